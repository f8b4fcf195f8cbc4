// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/plan/dealt_split.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include <fanout/plan/any_split.hpp>
#include <fanout/plan/measured_split.hpp>
#include <fanout/plan/weighted_split.hpp>

using fanout::AnySplit;
using fanout::DealtSplit;
using fanout::EvenSplit;
using fanout::MeasuredSplit;
using fanout::Plan;
using fanout::Shard;
using fanout::WeightedSplit;

TEST_CASE("the blocks of a device are a quarter of its rows, a quarter of the rest, and so on") {
  const Plan plan = DealtSplit{}(128, 2);
  REQUIRE(plan.size() > 6);
  CHECK(plan.is_dealt());
  CHECK(plan[0] == Shard{{0, 16}, 0});
  CHECK(plan[1] == Shard{{16, 32}, 1});
  CHECK(plan[2] == Shard{{32, 44}, 0});
  CHECK(plan[3] == Shard{{44, 56}, 1});
  CHECK(plan[4] == Shard{{56, 65}, 0});
}

TEST_CASE("the blocks are all rows, and each device has as many as the other policy says") {
  for (std::size_t devices = 1; devices <= 5; ++devices) {
    for (const std::size_t rows : {0u, 1u, 7u, 8u, 9u, 10u, 11u, 63u, 1000u, 123'457u, 10'000'000u}) {
      CAPTURE(devices);
      CAPTURE(rows);
      std::vector<double> weights(devices, 1.0);
      weights.back() = 7;
      const WeightedSplit shares{weights};
      const Plan plan = DealtSplit{shares}(rows, devices);
      fanout::check_plan(plan, rows, devices);
      std::vector<std::size_t> expected(devices);
      std::vector<std::size_t> found(devices);
      std::vector<std::size_t> blocks(devices);
      for (const Shard& shard : shares(rows, devices)) expected[shard.device] += shard.rows.size();
      for (const Shard& shard : plan) {
        found[shard.device] += shard.rows.size();
        ++blocks[shard.device];
      }
      CHECK(found == expected);
      for (const std::size_t count : blocks) CHECK(count <= 14);
    }
  }
}

TEST_CASE("batches of fewer than two rows for each device are not dealt") {
  CHECK(DealtSplit{}(5, 3) == EvenSplit{}(5, 3));
  CHECK_FALSE(DealtSplit{}(5, 3).is_dealt());
  CHECK(DealtSplit{}(6, 3).is_dealt());
  CHECK_FALSE(DealtSplit{}(0, 3).is_dealt());
}

TEST_CASE("a dealt split hands on devices and calls to a policy that learns") {
  AnySplit learns = DealtSplit{MeasuredSplit{}};
  CHECK(learns.observes());
  CHECK_FALSE(AnySplit(DealtSplit{}).observes());
  const std::vector<fanout::DeviceId> devices{{.kind = "host", .index = 0}, {.kind = "cuda", .index = 0}};
  learns.begin(devices.data(), devices.size());
  const auto rows_of = [&](std::size_t device) {
    std::size_t rows = 0;
    for (const Shard& shard : learns(1100, 2)) rows += shard.device == device ? shard.rows.size() : 0;
    return rows;
  };
  CHECK(rows_of(0) == 100);  // guessed from the kinds
  const Plan plan{{{0, 100}, 0}, {{100, 1100}, 1}};
  const std::vector<fanout::ShardTimes> shards(2, {.ended = 1'000'000});
  for (int i = 0; i < 3; ++i) {
    learns.observe({.plan = &plan, .devices = devices.data(), .device_count = 2, .shards = shards.data()});
  }
  CHECK(rows_of(1) == 1000);
  std::vector<fanout::ShardTimes> slower = shards;
  slower[1].ended = 10'000'000;
  learns.observe({.plan = &plan, .devices = devices.data(), .device_count = 2, .shards = slower.data()});
  CHECK(rows_of(1) < 600);
}
