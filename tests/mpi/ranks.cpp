// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/mpi/ranks.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/plan/parts.hpp>

#include "mpi/support/is_funneled.hpp"
#include "support/message_of.hpp"

namespace {

enum class Color { red, blue };

using fanout::Tensor;
using fanout::mpi::Ranks;
using fanout_test::message_of;

/// [rows, 3], with 10 * row + column.
Tensor<double, 2> table(const fanout::RowRange& rows) {
  Tensor<double, 2> all(rows.size(), 3);
  for (const auto [local, global] : rows.enumerate()) {
    for (std::size_t k = 0; k < 3; ++k) all(local, k) = static_cast<double>(10 * global + k);
  }
  return all;
}

template <class T>
Tensor<T, 1> filled(std::size_t size, T value) {
  Tensor<T, 1> all(size);
  for (std::size_t i = 0; i < size; ++i) all(i) = value;
  return all;
}

struct Statistics {
  fanout::Sum<double> sum;
  fanout::Mean<Tensor<double, 1>> mean;
};

}  // namespace

TEST_CASE("the rows of all ranks are the batch, without gaps, and differ by at most one") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const std::size_t all :
       {std::size_t{0}, std::size_t{1}, ranks.size(), 7 * ranks.size() + 3, std::size_t{1000}}) {
    const fanout::RowRange mine = ranks.rows(all);
    CHECK(mine.size() >= all / ranks.size());
    CHECK(mine.size() <= all / ranks.size() + 1);
    const auto first = ranks.gather(std::vector<std::size_t>{mine.first, mine.last}, 0);
    REQUIRE(first.has_value() == (ranks.rank() == 0));
    if (!first) continue;
    std::size_t end = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      CHECK((*first)[2 * i] == end);
      end = (*first)[2 * i + 1];
    }
    CHECK(end == all);
  }
}

TEST_CASE("gather gives the root the rows of all ranks, in their order, also from ranks without rows") {
  const Ranks ranks{MPI_COMM_WORLD};
  for (const std::size_t all : {std::size_t{0}, std::size_t{1}, 5 * ranks.size() + 2}) {
    for (std::size_t root = 0; root < ranks.size(); ++root) {
      const auto mine = table(ranks.rows(all));
      const auto whole = ranks.gather(mine, root);
      REQUIRE(whole.has_value() == (ranks.rank() == root));
      if (whole) CHECK(*whole == table({0, all}));
      const auto views = ranks.gather(std::tuple(mine.view(), ranks.rank()), root);
      REQUIRE(views.has_value() == (ranks.rank() == root));
      if (!views) continue;
      CHECK(std::get<0>(*views) == table({0, all}));
      CHECK(std::get<1>(*views).size() == ranks.size());
      for (std::size_t i = 0; i < ranks.size(); ++i) CHECK(std::get<1>(*views)(i) == i);
    }
  }
}

TEST_CASE("gather combines by rules, weighted by the rows of the ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  using namespace fanout::literals;
  const std::size_t all = 3 * ranks.size() + 1;
  const fanout::RowRange mine = ranks.rows(all);
  double sum = 0;
  for (const std::size_t row : mine) sum += static_cast<double>(row);
  const auto n = static_cast<double>(mine.size());
  const auto whole = ranks.gather(fanout::dict("rows"_k = table(mine), "sum"_k = fanout::psum(sum),
                                               "mean"_k = fanout::pmean(sum / n), "most"_k = fanout::pmax(sum),
                                               "list"_k = std::vector<Tensor<float, 1>>{Tensor<float, 1>(mine.size())},
                                               "named"_k = std::map<std::string, double>{{"a", sum}, {"b", n}},
                                               "both"_k = Statistics{.sum = sum, .mean = filled(2, sum / n)}),
                                  0);
  if (!whole) return;
  const auto rows = static_cast<double>(all);
  CHECK((*whole)["rows"_k] == table({0, all}));
  CHECK((*whole)["sum"_k] == rows * (rows - 1) / 2);
  CHECK((*whole)["mean"_k] == doctest::Approx((rows - 1) / 2).epsilon(1e-12));
  CHECK((*whole)["list"_k].size() == 1);
  CHECK((*whole)["list"_k][0].extent(0) == all);
  CHECK((*whole)["named"_k].at("a").size() == ranks.size());
  CHECK((*whole)["both"_k].sum == rows * (rows - 1) / 2);
  CHECK((*whole)["both"_k].mean.value(1) == doctest::Approx((rows - 1) / 2).epsilon(1e-12));
}

TEST_CASE("scatter gives each rank its rows of the root's tree, and all else whole") {
  const Ranks ranks{MPI_COMM_WORLD};
  using namespace fanout::literals;
  for (const std::size_t all : {std::size_t{0}, std::size_t{1}, 4 * ranks.size() + 3}) {
    for (std::size_t root = 0; root < ranks.size(); ++root) {
      const bool has = ranks.rank() == root;
      const auto batch = has ? table({0, all}) : Tensor<double, 2>();
      CHECK(ranks.scatter(batch, root) == table(ranks.rows(all)));

      const int scale = has ? 7 : 0;
      const std::vector<float> weights = has ? std::vector<float>{1, 2, 3} : std::vector<float>();
      const auto mine = ranks.scatter(
          fanout::dict("x"_k = batch.view(), "scale"_k = scale, "weights"_k = fanout::broadcast(weights)), root);
      CHECK(mine["x"_k] == table(ranks.rows(all)));
      CHECK(mine["scale"_k] == 7);
      CHECK(mine["weights"_k] == std::vector<float>{1, 2, 3});
    }
  }
}

TEST_CASE("a model on ranks gives what it gives in one process") {
  const Ranks ranks{MPI_COMM_WORLD};
  const fanout::ParallelModel model{[](fanout::View<const double, 2> x) {
                                      Tensor<double, 1> y(x.extent(0));
                                      for (std::size_t i = 0; i < y.size(); ++i) y(i) = x(i, 0) * x(i, 2) + 1;
                                      return y;
                                    },
                                    ranks.devices<fanout::HostDevice>(2)};
  const auto batch = table({0, 101});
  const auto whole = ranks.gather(model(ranks.scatter(batch, 0)), 0);
  if (whole) CHECK(*whole == model(batch));
}

TEST_CASE("calls that do not fit throw on all ranks, name all of them, and the ranks work afterwards") {
  const Ranks ranks{MPI_COMM_WORLD};
  const std::size_t last = ranks.size() - 1;
  const auto numbers = table(ranks.rows(ranks.size()));
  if (ranks.size() > 1) {
    const auto check = [&](const std::string& error, const char* others, const char* of_last) {
      CHECK(error.find("ranks make calls that do not fit together") == 0);
      CHECK(error.find("\n  rank 0 on ") != std::string::npos);
      CHECK(error.find("\n  rank " + std::to_string(last) + " on ") != std::string::npos);
      CHECK(error.find(others) != std::string::npos);
      CHECK(error.find(of_last) != std::string::npos);
    };
    check(message_of<fanout::StructureMismatch>([&] { ranks.gather(numbers, ranks.rank() == last ? 1 : 0); }),
          "gather with root 0 of double[2 axes] at output", "gather with root 1 of double[2 axes] at output");
    check(message_of<fanout::StructureMismatch>([&] {
            if (ranks.rank() == last) {
              static_cast<void>(ranks.scatter(1.0F, 0));
            } else {
              ranks.gather(numbers, 0);
            }
          }),
          "gather with root 0 of double[2 axes]", "scatter with root 0 of float at input");
    check(message_of<fanout::StructureMismatch>([&] {
            if (ranks.rank() == last) {
              ranks.gather(fanout::pmean(1.0), 0);
            } else {
              ranks.gather(fanout::psum(1.0), 0);
            }
          }),
          "of psum(double at output)", "of pmean(double at output)");
    const std::map<std::string, int> keys{{ranks.rank() == last ? "b" : "a", 1}};
    check(message_of<fanout::StructureMismatch>([&] { ranks.gather(keys, 0); }), "int at output[\"a\"]",
          "int at output[\"b\"]");
    const auto check_keys = [&](const auto& first, const auto& other, const char* of_first, const char* of_other) {
      const std::map<std::remove_cvref_t<decltype(first)>, int> map{{ranks.rank() == last ? other : first, 1}};
      check(message_of<fanout::StructureMismatch>([&] { ranks.gather(map, 0); }), of_first, of_other);
    };
    check_keys(Color::red, Color::blue, "output[0]", "output[1]");
    check_keys(0.1, 0.1000001, "output[0.1]", "output[0.1000001]");
    check_keys(std::pair{1, Color::red}, std::pair{1, Color::blue}, "output[(1, 0)]", "output[(1, 1)]");
  }
  // Only the last rank names a root that is none: it says so, and the others do not wait.
  const std::string text =
      message_of<fanout::Error>([&] { ranks.gather(numbers, ranks.rank() == last ? ranks.size() : 0); });
  CHECK(text.find(ranks.rank() == last ? "a root that is no rank: expected a rank below "
                                       : "a call of all ranks failed, since ranks failed in it:\n  rank ") == 0);
  CHECK(ranks.gather(numbers, 0).has_value() == (ranks.rank() == 0));
}

TEST_CASE("extents that do not fit throw on the root, and on the others an error that names it") {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.size() == 1) return;
  const std::size_t last = ranks.size() - 1;
  const Tensor<int, 2> mine(2, ranks.rank() == last ? 5 : 4);
  const std::string error = message_of<fanout::Error>([&] { ranks.gather(mine, 0); });
  if (ranks.rank() == 0) {
    CHECK_THROWS_AS(ranks.gather(mine, 0), fanout::ShapeMismatch);
  } else {
    CHECK_THROWS_AS(ranks.gather(mine, 0), fanout::Error);
    CHECK(error.find("a call of all ranks failed, since ranks failed in it:\n  rank 0 on ") == 0);
  }
  CHECK(error.find("trailing extents of [2, 4]") != std::string::npos);
  CHECK(error.find("from shard " + std::to_string(last) + " on rank:" + std::to_string(last)) != std::string::npos);
  CHECK(ranks.gather(Tensor<int, 1>(1), 0).has_value() == (ranks.rank() == 0));
}

TEST_CASE("a rank's exception before its part becomes an error on all ranks") {
  const Ranks ranks{MPI_COMM_WORLD};
  const bool has = ranks.rank() == 0;
  const std::tuple both(Tensor<int, 1>(has ? 3 : 0), Tensor<int, 1>(has ? 4 : 0));  // rows that disagree on the root
  const std::string error = message_of<fanout::Error>([&] { static_cast<void>(ranks.scatter(both, 0)); });
  CHECK(error.find("3") != std::string::npos);
  CHECK(error.find("4") != std::string::npos);
  if (!has) CHECK(error.find("a call of all ranks failed, since ranks failed in it:\n  rank 0 on ") == 0);
  CHECK(ranks.scatter(7, 0) == 7);
}

TEST_CASE("the ranks of a node share its cores out") {
  const Ranks ranks{MPI_COMM_WORLD};
  const auto devices = ranks.devices<fanout::HostDevice>();
  CHECK(devices.size() >= 1);
  std::vector<int> indices;
  for (std::size_t i = 0; i < devices.size(); ++i) indices.push_back(devices[i].id().index);
  const auto all = ranks.gather(indices, 0);  // all ranks of this test are on one node, with the same cores
  if (all) CHECK(std::set<int>(all->begin(), all->end()).size() == all->size());
  CHECK(ranks.devices<fanout::HostDevice>(3).size() == 3);
}

TEST_CASE("the user's communicator and its error handler are left as they are") {
  MPI_Comm own = MPI_COMM_NULL;
  REQUIRE(MPI_Comm_dup(MPI_COMM_WORLD, &own) == MPI_SUCCESS);
  {
    const Ranks ranks{own};
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    REQUIRE(MPI_Comm_get_errhandler(own, &handler) == MPI_SUCCESS);
    CHECK(handler == MPI_ERRORS_ARE_FATAL);
    // A message of the user's does not meet one of fanout's.
    const int to = static_cast<int>((ranks.rank() + 1) % ranks.size());
    int sent = 42;
    MPI_Request request = MPI_REQUEST_NULL;
    REQUIRE(MPI_Isend(&sent, 1, MPI_INT, to, 0, own, &request) == MPI_SUCCESS);
    const auto all = ranks.gather(filled(2, 5), 0);
    if (all) CHECK(*all == filled(2 * ranks.size(), 5));
    int got = 0;
    REQUIRE(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 0, own, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    REQUIRE(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(got == 42);
  }
  REQUIRE(MPI_Comm_free(&own) == MPI_SUCCESS);
  CHECK_THROWS_AS(Ranks{MPI_COMM_NULL}, fanout::InvalidArgument);
}

TEST_CASE("a communicator between two groups of ranks is refused") {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == 1) return;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  REQUIRE(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half) == MPI_SUCCESS);
  REQUIRE(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &both) == MPI_SUCCESS);
  const std::string text = message_of<fanout::InvalidArgument>([&] { const Ranks ranks{both}; });
  CHECK(text.find("found an intercommunicator") != std::string::npos);
  REQUIRE(MPI_Comm_free(&both) == MPI_SUCCESS);
  REQUIRE(MPI_Comm_free(&half) == MPI_SUCCESS);
}

TEST_CASE("options that do not fit are refused, and a rank that alone has them is named on the others") {
  using fanout::mpi::RanksOptions;
  const auto refused = [](const RanksOptions& options) {
    return message_of<fanout::InvalidArgument>([&] { const Ranks ranks(MPI_COMM_WORLD, options); });
  };
  CHECK(refused({.gpu_aware = true}).find("gpu_aware without by_library") != std::string::npos);
  CHECK(refused({.deadline = std::chrono::seconds(-1)}).find("a negative time at RanksOptions::deadline") !=
        std::string::npos);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string text =
      message_of<fanout::Error>([&] { const Ranks ranks(MPI_COMM_WORLD, RanksOptions{.gpu_aware = rank == 0}); });
  CHECK(text.find("gpu_aware without by_library") != std::string::npos);
  CHECK((text.find("a call of all ranks failed") != std::string::npos) == (rank != 0));
}

TEST_CASE("the MPI ends the ranks that wait for one, if that rank dies" * doctest::skip()) {
  const Ranks ranks{MPI_COMM_WORLD};
  if (ranks.rank() + 1 == ranks.size()) std::raise(SIGKILL);
  static_cast<void>(ranks.gather(ranks.rank(), 0));
}

TEST_CASE("any thread may exchange messages if MPI allows it, and is refused otherwise") {
  const Ranks ranks{MPI_COMM_WORLD};
  std::thread([&] {
    if (!fanout_test::is_funneled()) {
      CHECK(ranks.scatter(3, 0) == 3);
      return;
    }
    const std::string text = message_of<fanout::Error>([&] { static_cast<void>(ranks.scatter(3, 0)); });
    CHECK(text.find("a thread that is not the main one used mpi::Ranks") == 0);
    CHECK(text.find("ask MPI_Init_thread for MPI_THREAD_SERIALIZED") != std::string::npos);
  }).join();
  CHECK(ranks.scatter(4, 0) == 4);
}

// Started by tests/mpi/run with ranks that are bound to one core.
TEST_CASE("a bound rank that asks for more host devices than its cores is told the flag that helps" * doctest::skip()) {
  const Ranks ranks{MPI_COMM_WORLD};
  CHECK(ranks.devices<fanout::HostDevice>().size() == 1);
  if (std::thread::hardware_concurrency() < 2) {
    MESSAGE("skipped: a machine with one core");
    return;
  }
  const std::string text =
      message_of<fanout::InvalidArgument>([&] { static_cast<void>(ranks.devices<fanout::HostDevice>(4)); });
  CHECK(text.find("a rank asked for more host devices than the cores that it is bound to: expected 4 cores or more, "
                  "found 1 of the machine's ") == 0);
  CHECK(text.find("mpirun --bind-to none or --map-by slot:PE=4 (Open MPI), mpiexec -bind-to none (MPICH), or "
                  "srun --cpus-per-task=4") != std::string::npos);
}

TEST_CASE("an error of MPI is an MpiError with its code and text") {
  int error_class = 0;
  try {
    fanout::detail::check_mpi(MPI_ERR_RANK, "MPI_Send");
  } catch (const fanout::mpi::MpiError& error) {
    MPI_Error_class(error.code(), &error_class);
    CHECK(std::string(error.what()).find("MPI_Send failed: ") == 0);
  }
  CHECK(error_class == MPI_ERR_RANK);
}
