// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fanout/plan/chunk_split.hpp>

using fanout::check_plan;
using fanout::ChunkSplit;
using fanout::Plan;

static_assert(fanout::Split<ChunkSplit>);

namespace {

using Sizes = std::vector<std::size_t>;

Sizes sizes(std::size_t rows, std::size_t devices) {
  Sizes sizes;
  for (const auto& shard : ChunkSplit{}(rows, devices)) sizes.push_back(shard.rows.size());
  return sizes;
}

static_assert(ChunkSplit{}(30, 2) == Plan{{{0, 15}, 0}, {{15, 30}, 1}});
static_assert(ChunkSplit{}(10, 3) == Plan{{{0, 4}, 0}, {{4, 8}, 1}, {{8, 10}, 2}}, "the last one takes what remains");
static_assert(ChunkSplit{}(9, 4) == Plan{{{0, 3}, 0}, {{3, 6}, 1}, {{6, 9}, 2}}, "a device stays idle");
static_assert(ChunkSplit{}(2, 4) == Plan{{{0, 1}, 0}, {{1, 2}, 1}}, "fewer rows than devices");
static_assert(ChunkSplit{}(0, 3) == Plan{{{0, 0}, 0}, {{0, 0}, 1}, {{0, 0}, 2}}, "without rows each has none");
static_assert(ChunkSplit{}(7, 1) == Plan{{{0, 7}, 0}});
static_assert(ChunkSplit{}(39, 20).size() == 20, "more than eight shards, while compiling");
static_assert((check_plan(ChunkSplit{}(39, 20), 39, 20), true));

}  // namespace

// What PyTorch was seen to make is a table in tests/conformance/chunking.cpp.
TEST_CASE("a chunk split cuts shards of one size off the rows until none are left") {
  for (std::size_t devices = 1; devices <= 20; ++devices) {
    for (std::size_t rows = 0; rows < 128; ++rows) {
      CAPTURE(devices);
      CAPTURE(rows);
      const Plan plan = ChunkSplit{}(rows, devices);
      REQUIRE_NOTHROW(check_plan(plan, rows, devices));
      for (std::size_t i = 0; i < plan.size(); ++i) CHECK(plan[i].device == i);
      Sizes expected;
      const std::size_t size = (rows + devices - 1) / devices;
      for (std::size_t left = rows; left > 0; left -= expected.back()) expected.push_back(std::min(size, left));
      if (rows == 0) expected.assign(devices, 0);
      CHECK(sizes(rows, devices) == expected);
    }
  }
}

TEST_CASE("a chunk split works with the largest number of rows") {
  constexpr auto most = static_cast<std::size_t>(-1);
  CHECK(ChunkSplit{}(most, 2) == Plan{{{0, most / 2 + 1}, 0}, {{most / 2 + 1, most}, 1}});
  CHECK(ChunkSplit{}(most, 1) == Plan{{{0, most}, 0}});
  for (const std::size_t devices : {3U, 7U, 4096U}) {
    CAPTURE(devices);
    const Plan plan = ChunkSplit{}(most - 1, devices);
    CHECK_NOTHROW(check_plan(plan, most - 1, devices));
    CHECK(plan.size() == devices);
  }
}
