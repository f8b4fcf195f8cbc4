// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One program, started with 1, 2, 3, 4 or 8 ranks. Each rank runs all cases; it fails if one rank fails.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/mpi/ranks.hpp>

namespace {

template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const fanout::Error& error) {
    return error.what();
  }
  return "no error";
}
const auto make_ranks = [] { const fanout::mpi::Ranks ranks{MPI_COMM_WORLD}; };

}  // namespace

int main(int argc, char** argv) {
  const std::string early = text_of(make_ranks);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int failed = doctest::Context(argc, argv).run();
  // Ends after MPI does: says nothing.
  const auto* const late = new fanout::mpi::Ranks{MPI_COMM_WORLD};
  MPI_Finalize();
  delete late;
  if (early.find("MPI is not initialised at mpi::Ranks") == std::string::npos) failed = 1;
  if (text_of(make_ranks).find("MPI has been finalised at mpi::Ranks") == std::string::npos) failed = 1;
  return failed;
}
