// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

#include <fanout/plan/even_split.hpp>

using fanout::EvenSplit;
using fanout::Plan;
using fanout::Shard;

static_assert(fanout::Split<EvenSplit>);

namespace {

static_assert(EvenSplit{}(30, 2) == Plan{{{0, 15}, 0}, {{15, 30}, 1}});
static_assert(EvenSplit{}(10, 3) == Plan{{{0, 4}, 0}, {{4, 7}, 1}, {{7, 10}, 2}}, "the larger ones first");
static_assert(EvenSplit{}(11, 3) == Plan{{{0, 4}, 0}, {{4, 8}, 1}, {{8, 11}, 2}});
static_assert(EvenSplit{}(7, 1) == Plan{{{0, 7}, 0}});
static_assert(EvenSplit{}(3, 3) == Plan{{{0, 1}, 0}, {{1, 2}, 1}, {{2, 3}, 2}});
static_assert(EvenSplit{}(1, 8) == Plan{{{0, 1}, 0}}, "the surplus devices stay idle");
static_assert(EvenSplit{}(2, 4) == Plan{{{0, 1}, 0}, {{1, 2}, 1}});
static_assert(EvenSplit{}(0, 3) == Plan{{{0, 0}, 0}, {{0, 0}, 1}, {{0, 0}, 2}}, "without rows each has none");
static_assert(EvenSplit{}(0, 1) == Plan{{{0, 0}, 0}});
static_assert(EvenSplit{}(20, 20).size() == 20, "more than eight shards, while compiling");

}  // namespace

TEST_CASE("an even split covers the rows in order with shards whose sizes differ by at most one") {
  for (std::size_t devices = 1; devices <= 20; ++devices) {
    for (std::size_t rows = 0; rows < 128; ++rows) {
      CAPTURE(devices);
      CAPTURE(rows);
      const Plan plan = EvenSplit{}(rows, devices);
      REQUIRE_NOTHROW(check_plan(plan, rows, devices));
      CHECK(plan.size() == (rows == 0 ? devices : std::min(rows, devices)));
      for (std::size_t i = 0; i < plan.size(); ++i) {
        CHECK(plan[i].device == i);
        CHECK(plan[i].rows.size() <= plan[0].rows.size());
        CHECK(plan[i].rows.size() + 1 >= plan[0].rows.size());
        if (rows != 0) CHECK(!plan[i].rows.empty());
        if (i != 0) CHECK(plan[i].rows.size() <= plan[i - 1].rows.size());
      }
    }
  }
}

TEST_CASE("an even split works with the largest number of rows") {
  constexpr auto most = static_cast<std::size_t>(-1);
  const Plan plan = EvenSplit{}(most, 2);
  CHECK(plan == Plan{{{0, most / 2 + 1}, 0}, {{most / 2 + 1, most}, 1}});
}
