// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contributing/page_split.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <span>
#include <vector>

#include <fanout/fanout.hpp>

using contributing::PageSplit;

static_assert(PageSplit{2}(5, 2) == fanout::Plan{{{0, 2}, 0}, {{2, 4}, 1}, {{4, 5}, 0}});
static_assert(PageSplit{9}(5, 2) == fanout::Plan{{{0, 5}, 0}});
static_assert(PageSplit{0}(5, 2) == fanout::Plan{{{0, 5}, 0}});
static_assert(PageSplit{2}(0, 2) == fanout::Plan{{{0, 0}, 0}, {{0, 0}, 1}});

TEST_CASE("pages cover all rows in order, whatever their size") {
  for (const std::size_t page : {0U, 1U, 2U, 7U, 100U}) {
    for (const std::size_t rows : {0U, 1U, 6U, 7U, 30U}) {
      const fanout::Plan plan = PageSplit{page}(rows, 3);
      CHECK_NOTHROW(fanout::check_plan(plan, rows, 3));
      for (const fanout::Shard& shard : plan) CHECK((page == 0 || shard.rows.size() <= page));
    }
  }
}

TEST_CASE("a model runs page by page") {
  std::vector<int> x(100);
  std::iota(x.begin(), x.end(), 0);
  // [use]
  const fanout::ParallelModel sum{
      [](std::span<const int> rows) { return std::accumulate(rows.begin(), rows.end(), 0); }, fanout::host_devices(2),
      fanout::Options{.split = PageSplit{.page = 30}}};
  const auto sums = sum(x);  // of the rows [0, 30), [30, 60), [60, 90) and [90, 100)
  // [/use]
  REQUIRE(sums.size() == 4);
  CHECK(sums[0] == 435);
  CHECK(sums[3] == 945);
}
