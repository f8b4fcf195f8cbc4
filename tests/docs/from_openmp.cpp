// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// fanout's half of what docs/guide/from_openmp.md shows. OpenMP's half is in openmp.cpp.
#include <doctest/doctest.h>

#include <cstddef>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

TEST_CASE("from OpenMP: a loop and a sum") {
  using fanout::Context, fanout::host_devices, fanout::output, fanout::ParallelModel, fanout::psum, fanout::View;
  const auto values = fanout::tensor<double>({1, 2, 3, 4, 5, 6, 7});
  const double factor = 2;
  // [loop]
  const auto scale = [](Context auto& ctx, View<const double, 1> x, double a) {
    auto y = output<double>(ctx);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += y[i] = a * x[i];
    return std::tuple{y, psum(sum)};
  };
  const auto [y, sum] = ParallelModel{scale, host_devices(4)}(values, factor);
  // [/loop]
  CHECK(std::vector(y.begin(), y.end()) == std::vector<double>{2, 4, 6, 8, 10, 12, 14});
  CHECK(sum == 56);
}

TEST_CASE("from OpenMP: results without a lock") {
  using fanout::ParallelModel, fanout::Range, fanout::RowRange;
  const std::vector<double> x{1, 9, 2, 8, 3, 7, 4};
  const double limit = 5;
  // [hits]
  const ParallelModel above{[&](RowRange rows) {
    std::vector<std::size_t> found;
    for (const std::size_t i : rows)
      if (x[i] > limit) found.push_back(i);
    return found;
  }};
  const auto hits = above(Range{x.size()});  // a std::vector<std::size_t>, in row order
  // [/hits]
  CHECK(hits == std::vector<std::size_t>{1, 3, 5});
}

TEST_CASE("from OpenMP: random numbers of rows") {
  using fanout::Context, fanout::Options, fanout::ParallelModel, fanout::psum, fanout::Range, fanout::RowRange;
  const int points = 1000;
  // [random]
  const auto below_half = [](Context auto& ctx, RowRange rows) {
    long hits = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) hits += ctx.random(i).uniform() < 0.5 ? 1 : 0;
    return psum(hits);
  };
  const long hits = ParallelModel{below_half, Options{.seed = 7}}(Range{points});
  // [/random]
  CHECK(hits > 400);
  CHECK(hits < 600);
  CHECK(ParallelModel{below_half, fanout::host_devices(3), Options{.seed = 7}}(Range{points}) == hits);
}

TEST_CASE("from OpenMP: private copies") {
  using fanout::host_devices, fanout::ParallelModel, fanout::Range, fanout::RowRange;
  struct Counter {
    int calls = 10;
    int forward(RowRange) { return ++calls; }
  };
  const ParallelModel counters{Counter{}, host_devices(2)};
  counters(Range{4});
  const auto counts = counters(Range{4});
  CHECK(std::vector(counts.begin(), counts.end()) == std::vector{12, 12});
  CHECK(counters.model().calls == 10);
}

TEST_CASE("from OpenMP: an exception does not end the program") {
  using fanout::ParallelModel, fanout::Range, fanout::RowRange;
  const ParallelModel model{[](RowRange rows) { std::vector<int>{}.at(rows.size()); }, fanout::host_devices(2)};
  CHECK_THROWS_AS(model(Range{4}), fanout::ReplicaError);
}
