// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// calls ROW [ROUNDS [SECONDS]]: what a model of all ranks costs beside bare calls of MPI. Rows: alone, agreement,
// large, many. All ranks are on one machine. See benchmarks/README.md.

#include <dlfcn.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fanout/mpi.hpp>

#include "turns.hpp"

namespace {

using benchmarks::Contender;
using benchmarks::Turns;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout::mpi::Ranks;
using Floats = Tensor<float, 1>;
using Seconds = std::vector<double>;

/// Knows where its rows stand, and returns nothing.
struct Placed {
  void forward(fanout::Context auto& ctx, View<const double, 1>) const {
    if (ctx.size() == 0) throw std::logic_error("a call without shards");
  }
};

/// Returns the sum over all shards of what it holds.
struct Summed {
  std::vector<Floats> held;

  Summed(std::size_t tensors, std::size_t floats) {
    for (std::size_t i = 0; i < tensors; ++i) held.push_back(Floats::full({floats}, static_cast<float>(i % 7)));
  }

  auto forward(fanout::Context auto&, View<const double, 1>) const {
    std::vector<View<const float, 1>> views;
    views.reserve(held.size());
    for (const Floats& each : held) views.push_back(each.view());
    return fanout::psum(std::move(views));
  }
};

struct Bench {
  const Ranks& ranks;
  std::size_t rounds;
  double seconds;
  Tensor<double, 1> x{8};

  template <class Model>
  auto on_ranks(const Model& model) const {
    return ParallelModel{model, fanout::host_devices(1), {.ranks = ranks}};
  }
  template <class Model>
  auto alone(const Model& model) const {
    return ParallelModel{model, fanout::host_devices(1)};
  }

  std::string with_ranks(const char* text) const { return text + (", " + std::to_string(ranks.size()) + " ranks"); }

  /// A world of one rank, against a model without ranks.
  void one() const {
    const auto placed = on_ranks(Placed{}), placed_alone = alone(Placed{});
    const auto summed = on_ranks(Summed(2, 100)), summed_alone = alone(Summed(2, 100));
    const Turns turns({{"placed", [&] { placed(x); }},
                       {"alone", [&] { placed_alone(x); }},
                       {"summed", [&] { summed(x); }},
                       {"alone", [&] { summed_alone(x); }}},
                      rounds, seconds);
    turns.print(
        "a call that takes a context: one rank", [](const Seconds& s) { return 1e9 * s[0]; }, "ns");
    turns.print(
        "  more than without ranks", [](const Seconds& s) { return 1e9 * (s[0] - s[1]); }, "ns", "50");
    turns.print(
        "a call that returns sums: one rank", [](const Seconds& s) { return 1e9 * s[2]; }, "ns");
    turns.print(
        "  more than without ranks", [](const Seconds& s) { return 1e9 * (s[2] - s[3]); }, "ns", "50");
    if (dlsym(RTLD_DEFAULT, "benchmarks_allocations") == nullptr) return;
    print_allocations("a call that takes a context", placed, placed_alone);
    print_allocations("a call that returns sums", summed, summed_alone);
  }

  template <class A, class B>
  void print_allocations(const char* what, const A& on_one, const B& without) const {
    using Count = long();
    auto* const count = reinterpret_cast<Count*>(dlsym(RTLD_DEFAULT, "benchmarks_allocations"));
    const auto allocations = [&](const auto& model) {
      const long before = count();
      for (int i = 0; i < 1000; ++i) model(x);
      return static_cast<double>(count() - before) / 1000;
    };
    const double with = allocations(on_one);
    const double extra = with - allocations(without);
    std::printf("%s: one rank %36.3f allocations, %.3f more than without ranks   target: 0\n", what, with, extra);
  }

  /// The exchange at the beginning of a call, against a bare MPI_Allreduce of 64 bytes.
  void agreement() const {
    const auto placed = on_ranks(Placed{}), placed_alone = alone(Placed{});
    const fanout::backend::ProcessRanks* const processes = ranks;
    const std::string name = "a step";
    double numbers[8] = {}, sums[8] = {};
    const Turns turns(
        {{"call", [&] { placed(x); }},
         {"alone", [&] { placed_alone(x); }},
         {"exchange", [&] { processes->begin({.hash = 1, .name = name, .rows = 8, .shards = 1}, nullptr); }},
         {"bare", [&] { MPI_Allreduce(numbers, sums, 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }},
         {"bare gather",
          [&] {
            std::vector<double> all(4 * ranks.size());
            MPI_Allgather(numbers, 4, MPI_DOUBLE, all.data(), 4, MPI_DOUBLE, MPI_COMM_WORLD);
          }}},
        rounds, seconds);
    turns.print(
        with_ranks("MPI_Allreduce of 64 bytes"), [](const Seconds& s) { return 1e6 * s[3]; }, "us");
    turns.print(
        "MPI_Allgather of 32 bytes / that", [](const Seconds& s) { return s[4] / s[3]; }, "");
    turns.print(
        "the exchange / that", [](const Seconds& s) { return s[2] / s[3]; }, "", "1.2");
    turns.print(
        "(a call that takes a context - the same without ranks) / that",
        [](const Seconds& s) { return (s[0] - s[1]) / s[3]; }, "", "1.2");
  }

  /// Sums of a tree, against a bare MPI_Allreduce of as many floats.
  template <class Flat>
  void sums(const char* what, std::size_t tensors, std::size_t floats, const Flat& flat) const {
    const std::size_t all = tensors * floats;
    const Summed tree(tensors, floats);
    const auto summed = on_ranks(tree), summed_alone = alone(tree);
    const auto one = on_ranks(Summed(1, all)), one_alone = alone(Summed(1, all));
    const std::vector<float> from(all, 1);
    std::vector<float> to(all);
    const Turns turns(
        {{"tree", [&] { summed(x); }},
         {"alone", [&] { summed_alone(x); }},
         {"one tensor", [&] { one(x); }},
         {"alone", [&] { one_alone(x); }},
         {"bare",
          [&] { MPI_Allreduce(from.data(), to.data(), static_cast<int>(all), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }}},
        rounds, seconds);
    turns.print(
        with_ranks("MPI_Allreduce of as many floats"), [](const Seconds& s) { return 1e3 * s[4]; }, "ms");
    turns.print(
        what + std::string(": the call"), [](const Seconds& s) { return 1e3 * s[0]; }, "ms");
    turns.print(
        "  more than the same without ranks", [](const Seconds& s) { return 1e3 * (s[0] - s[1]); }, "ms");
    turns.print(
        "as one tensor: the call", [](const Seconds& s) { return 1e3 * s[2]; }, "ms");
    turns.print(
        "  more than the same without ranks", [](const Seconds& s) { return 1e3 * (s[2] - s[3]); }, "ms");
    flat(turns);
  }

  void large() const {
    sums("100 tensors of 1 MB", 100, 250'000, [](const Turns& turns) {
      turns.print(
          "speed: MPI_Allreduce / (the call - the same without ranks)",
          [](const Seconds& s) { return s[4] / (s[0] - s[1]); }, "", "0.95");
      turns.print(
          "speed: MPI_Allreduce / the whole call", [](const Seconds& s) { return s[4] / s[0]; }, "");
    });
  }

  void many() const {
    sums("3,000 tensors of 1 KiB", 3000, 256, [](const Turns& turns) {
      turns.print(
          "the whole call of the tree / of one tensor", [](const Seconds& s) { return s[0] / s[2]; }, "");
      turns.print(
          "(call - without ranks) of the tree / MPI_Allreduce", [](const Seconds& s) { return (s[0] - s[1]) / s[4]; },
          "", "1.15");
      turns.print(
          "(call - without ranks) of the tree / of one tensor",
          [](const Seconds& s) { return (s[0] - s[1]) / (s[2] - s[3]); }, "", "1.15");
    });
  }
};

int measure(int argc, char** argv) {
  const std::string_view row = argc > 1 ? argv[1] : "";
  const Ranks ranks{MPI_COMM_WORLD};
  const Bench bench{.ranks = ranks,
                    .rounds = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 15,
                    .seconds = argc > 3 ? std::strtod(argv[3], nullptr) : 0.1};
  if (row == "alone") {
    bench.one();
  } else if (row == "agreement") {
    bench.agreement();
  } else if (row == "large") {
    bench.large();
  } else if (row == "many") {
    bench.many();
  } else {
    std::fprintf(stderr, "usage: calls alone|agreement|large|many [ROUNDS [SECONDS]]\n");
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  const int status = measure(argc, argv);
  MPI_Finalize();
  return status;
}
