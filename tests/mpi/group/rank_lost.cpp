// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/group/rank_lost.hpp>

#include <doctest/doctest.h>
#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/mpi/group/ulfm.hpp>
#include <fanout/mpi/ranks.hpp>
#include <support/message_of.hpp>

// tests/mpi/survive loses ranks.

using fanout::mpi::RankLost;
using fanout::mpi::Ranks;
using fanout_test::message_of;

TEST_CASE("a lost rank is named, and the text says what to do") {
  const RankLost two(std::vector<std::size_t>{1, 3});
  CHECK(std::string(two.what()) ==
        "ranks 1, 3 were lost; call shrink() on all others, and make new models with what it returns");
  CHECK(two.ranks() == std::vector<std::size_t>{1, 3});
  CHECK(std::string(RankLost({2}).what()).starts_with("rank 2 was lost; "));
  CHECK(std::string(RankLost({}).what()).starts_with("a rank was lost that is not known here; "));
}

TEST_CASE("ranks that are to survive under an MPI that ends the job are refused, with what to do") {
  if (fanout::detail::Ulfm::is_enabled()) return;
  const std::string text = message_of<fanout::Error>([] { const Ranks ranks(MPI_COMM_WORLD, {.survive = true}); });
  CHECK(
      text ==
      "RanksOptions::survive with an MPI that ends the job if a rank dies: expected an MPI with ULFM that was started "
      "with it; use Open MPI 5 and start the program with mpirun --with-ft ulfm, or leave out .survive");
}

TEST_CASE("a rank that alone is to survive is refused on all ranks") {
  if (fanout::detail::Ulfm::is_enabled()) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string text =
      message_of<fanout::Error>([&] { const Ranks ranks(MPI_COMM_WORLD, {.survive = rank == 0}); });
  CHECK(text.find("RanksOptions::survive with an MPI that ends the job") != std::string::npos);
}

TEST_CASE("ranks that do not survive cannot shrink") {
  const Ranks ranks{MPI_COMM_WORLD};
  const std::string text = message_of<fanout::Error>([&] { const Ranks left = ranks.shrink(); });
  CHECK(text.find("Ranks{communicator, {.survive = true}}") != std::string::npos);
}
