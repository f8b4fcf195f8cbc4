// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A search index that is too big for one device: each finds the nearest of its vectors. The best of all are merged.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fanout/stages.hpp>
#include <iterator>
#include <utility>
#include <vector>

using Rows = fanout::View<const float, 2>;
using Hits = std::vector<std::pair<float, std::size_t>>;  // squared distances and rows, the nearest first
struct Nearest {
  std::vector<Hits> of_query;
  void keep(std::size_t count) {
    for (Hits& hits : of_query) {
      std::sort(hits.begin(), hits.end());
      if (hits.size() > count) hits.resize(count);
    }
  }
};

// [slices]
struct Index {
  fanout::Slice<fanout::Tensor<float, 2>> base;  // [vectors, dimensions]; each device has some vectors

  auto forward(fanout::Context auto& ctx, Rows queries) const {
    const Rows mine = base.part(ctx);
    Nearest found{std::vector<Hits>(queries.extent(0))};
    for (std::size_t q = 0; q < queries.extent(0); ++q) {
      for (std::size_t row = 0; row < mine.extent(0); ++row) {
        float distance = 0;
        for (std::size_t i = 0; i < mine.extent(1); ++i) distance += std::pow(mine(row, i) - queries(q, i), 2.0F);
        found.of_query[q].emplace_back(distance, base.range(ctx).first + row);
      }
    }
    found.keep(3);
    return fanout::reduce(std::move(found), [](Nearest a, const Nearest& b) {
      for (std::size_t q = 0; q < a.of_query.size(); ++q)
        std::ranges::copy(b.of_query[q], back_inserter(a.of_query[q]));
      a.keep(3);
      return a;
    });
  }
};
// [/slices]

int main() {
  fanout::Tensor<float, 2> base({1000, 2});
  for (std::size_t i = 0; i < base.size(); ++i) base.data()[i] = static_cast<float>(i * i % 1009);
  const auto queries = fanout::Tensor<float, 2>::full({2, 2}, 500);
  const fanout::ParallelModel index{Index{base}, fanout::host_devices(3)};
  for (const Hits& hits : index(fanout::broadcast(queries)).of_query) {
    for (const auto& [distance, row] : hits) std::printf("vector %zu at %g  ", row, double(distance));
    std::printf("\n");
  }
}
