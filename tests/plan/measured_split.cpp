// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/plan/any_split.hpp>
#include <fanout/plan/measured_split.hpp>

#include "support/message_of.hpp"

using fanout::AnySplit;
using fanout::CallTimes;
using fanout::DeviceId;
using fanout::EvenSplit;
using fanout::MeasuredSplit;
using fanout::Plan;
using fanout::Shard;
using fanout::ShardTimes;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// A device that takes so many nanoseconds for a shard, and so many for each row.
struct Cost {
  double fixed = 0;
  double per_row = 1000;

  double of(std::size_t rows) const { return fixed + per_row * static_cast<double>(rows); }
};

std::vector<DeviceId> ids(std::size_t count) {
  std::vector<DeviceId> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back({.kind = "host", .index = static_cast<int>(i)});
  return ids;
}

/// Shows the policy a call with its own plan, and returns how long the call took, in nanoseconds.
template <class Split>
double call(Split& split, const std::vector<Cost>& costs, std::size_t rows) {
  const Plan plan = split(rows, costs.size());
  fanout::check_plan(plan, rows, costs.size());
  std::vector<ShardTimes> shards;
  double longest = 0;
  for (const Shard& shard : plan) {
    const double time = costs[shard.device].of(shard.rows.size());
    if (time > longest) longest = time;
    shards.push_back({.began = 5, .forward = 5, .returned = 6, .ended = 5 + static_cast<std::int64_t>(time)});
  }
  const std::vector<DeviceId> devices = ids(costs.size());
  split.observe({.plan = &plan, .devices = devices.data(), .device_count = devices.size(), .shards = shards.data()});
  return longest;
}

std::vector<std::size_t> sizes(const Plan& plan, std::size_t devices) {
  std::vector<std::size_t> rows(devices);
  for (const Shard& shard : plan) rows[shard.device] += shard.rows.size();
  return rows;
}

}  // namespace

TEST_CASE("a measured split begins with an even plan, and gives rows by speed after one call") {
  MeasuredSplit split;
  CHECK(split(10, 2) == EvenSplit{}(10, 2));
  CHECK(split(0, 2) == EvenSplit{}(0, 2));
  CHECK(call(split, {{.per_row = 1000}, {.per_row = 4000}}, 1000) == 2'000'000);
  CHECK(sizes(split(1000, 2), 2) == std::vector<std::size_t>{800, 200});
  CHECK(call(split, {{.per_row = 1000}, {.per_row = 4000}}, 1000) == 800'000);
  CHECK(split.weights(1000, 2)[0] == doctest::Approx(0.8));
  CHECK(split.frozen(1000, 2)(100, 2) == Plan{{{0, 80}, 0}, {{80, 100}, 1}});
}

TEST_CASE("a measured split guesses that a device with another memory than the host's is ten times as fast") {
  const std::vector<DeviceId> devices{{.kind = "host", .index = 0}, {.kind = "cuda", .index = 0}};
  MeasuredSplit split;
  split.begin(devices.data(), devices.size());
  CHECK(sizes(split(110, 2), 2) == std::vector<std::size_t>{10, 100});
  MeasuredSplit weighted{std::vector<double>{3, 1}};
  weighted.begin(devices.data(), devices.size());
  CHECK(sizes(weighted(100, 2), 2) == std::vector<std::size_t>{75, 25});
  CHECK(says(message_of<fanout::InvalidArgument>([&] { weighted(100, 3); }), "wrong number of weights", "3 devices",
             "2"));
  CHECK(says(message_of<fanout::InvalidArgument>([&] {
               MeasuredSplit(std::vector<double>{1, -1});
             }),
             "invalid weight", "position 1"));
}

TEST_CASE("a device of weight zero gets no rows, and is not tried alone") {
  MeasuredSplit split{std::vector<double>{1, 0, 1}};
  for (const std::size_t rows : {std::size_t{100}, std::size_t{4}}) {
    for (int i = 0; i < 6; ++i) {
      CHECK(sizes(split(rows, 3), 3)[1] == 0);
      call(split, {{}, {}, {}}, rows);
    }
    CHECK(sizes(split(rows, 3), 3) == std::vector<std::size_t>{rows / 2, 0, rows / 2});
  }
}

TEST_CASE("what a measured split has learnt of some devices is refused for another number of them") {
  MeasuredSplit split;
  call(split, {{}, {}}, 100);
  for (const std::size_t rows : {std::size_t{100}, std::size_t{4}, std::size_t{0}}) {  // 0: when a model is made
    CHECK(says(message_of<fanout::InvalidArgument>([&] { split(rows, 3); }), "wrong number of weights", "MeasuredSplit",
               "3 devices", "2"));
  }
}

TEST_CASE("a measured split learns which part of a shard's time does not depend on its rows") {
  const std::vector<Cost> costs{{.per_row = 1000}, {.fixed = 1e6, .per_row = 50}, {.fixed = 50'000, .per_row = 400}};
  for (const std::size_t rows : {std::size_t{10}, std::size_t{1000}, std::size_t{100'000}}) {
    CAPTURE(rows);
    MeasuredSplit split;
    double best_alone = 1e30;
    for (const Cost& cost : costs) best_alone = std::min(best_alone, cost.of(rows));
    for (int i = 0; i < (rows == 10 ? 5 : 2); ++i) call(split, costs, rows);
    for (int i = 0; i < 10; ++i) CHECK(call(split, costs, rows) <= 1.001 * best_alone);
  }
}

TEST_CASE("a measured split believes a large change at once, and averages small ones") {
  std::vector<Cost> costs{{.per_row = 1000}, {.per_row = 1000}};
  MeasuredSplit split;
  for (int i = 0; i < 20; ++i) call(split, costs, 1000);
  SUBCASE("four times slower, and back") {
    costs[1].per_row = 4000;
    call(split, costs, 1000);
    CHECK(sizes(split(1000, 2), 2) == std::vector<std::size_t>{800, 200});
    costs[1].per_row = 1000;
    call(split, costs, 1000);
    CHECK(sizes(split(1000, 2), 2) == std::vector<std::size_t>{500, 500});
  }
  SUBCASE("8 % slower in one call moves the plan by less than 1 %") {
    costs[1].per_row = 1080;
    call(split, costs, 1000);
    CHECK(sizes(split(1000, 2), 2) == std::vector<std::size_t>{500, 500});
    SUBCASE("but in many calls it is followed") {
      for (int i = 0; i < 60; ++i) call(split, costs, 1000);
      CHECK(sizes(split(1000, 2), 2)[1] < 490);
    }
  }
}

TEST_CASE("a small change counts as one of the last 32 calls") {
  for (const int before : {3, 7, 12, 24, 31, 100}) {
    CAPTURE(before);
    std::vector<Cost> costs{{.per_row = 1000}, {.per_row = 1000}};
    MeasuredSplit split;
    for (int i = 0; i < before; ++i) call(split, costs, 10'000);
    costs[1].per_row = 1200;
    call(split, costs, 10'000);
    costs[1].per_row = 1000;
    const double slower = 1 + 0.2 / std::min(before + 1, 32);  // of the second device
    // A plan changes if calls gain 0.5 % by it.
    const double expected = slower / 2 - 0.5 > 0.005 ? 1 / (1 + slower) : 0.5;
    CHECK(split.weights(10'000, 2)[1] == doctest::Approx(expected).epsilon(1e-4));
  }
}

TEST_CASE("how much longer a device takes alone is the mean of its last 32 calls alone") {
  const std::vector<DeviceId> devices = ids(2);
  MeasuredSplit split;
  // Together, the devices take 0.6 of the time that the second one takes alone, and then gather.
  const auto call_once = [&](double slower) {
    const Plan plan = split(1000, 2);
    std::vector<ShardTimes> shards;
    std::int64_t joined = 0;
    for (const Shard& shard : plan) {
      const double per_row = shard.device == 0 ? 1500 : 1000 * slower;
      const auto time = static_cast<std::int64_t>(per_row * static_cast<double>(shard.rows.size()));
      joined = std::max(joined, time);
      shards.push_back({.began = 0, .forward = 0, .returned = time, .ended = time});
    }
    split.observe({.plan = &plan,
                   .devices = devices.data(),
                   .device_count = devices.size(),
                   .shards = shards.data(),
                   .joined = joined,
                   .ended = joined + (plan.size() == 1 ? 0 : 417'000)});
  };
  for (int i = 0; i < 60; ++i) call_once(1);
  const Plan alone{{{0, 1000}, 1}};
  REQUIRE(split(1000, 2) == alone);
  call_once(1.2);
  CHECK(split(1000, 2) == alone);  // 1.2 % longer, which is less than they take together
  call_once(1.2);
  CHECK(split(1000, 2) != alone);
}

TEST_CASE("a measured split learns for each size of the batch, and begins with what it knows of others") {
  MeasuredSplit split;
  const std::vector<Cost> small{{.per_row = 1000}, {.per_row = 3000}};
  const std::vector<Cost> large{{.per_row = 1000}, {.per_row = 1000}};  // say, since a cache is full on the first one
  call(split, small, 100);
  CHECK(sizes(split(100'000, 2), 2) == std::vector<std::size_t>{75'000, 25'000});
  call(split, large, 100'000);
  call(split, large, 100'000);
  CHECK(sizes(split(100'000, 2), 2) == std::vector<std::size_t>{50'000, 50'000});
  CHECK(sizes(split(100, 2), 2) == std::vector<std::size_t>{75, 25});
}

TEST_CASE("a measured split tries batches of few rows on each device alone") {
  MeasuredSplit split;
  const std::vector<Cost> costs{{.fixed = 9000, .per_row = 100}, {.fixed = 7000, .per_row = 4000}, {.fixed = 1e6}};
  call(split, costs, 4);
  for (std::size_t device = 0; device < 3; ++device) {
    CHECK(split(4, 3) == Plan{{{0, 4}, device}});
    call(split, costs, 4);
  }
  CHECK(split(4, 3) == Plan{{{0, 4}, 0}});
  CHECK(call(split, costs, 4) == 9400);
  CHECK(split(4, 3) == Plan{{{0, 4}, 0}});
}

TEST_CASE("a batch is of few rows if it has at most four for each device") {
  for (const std::size_t rows : {std::size_t{8}, std::size_t{9}}) {
    CAPTURE(rows);
    MeasuredSplit split;
    call(split, {{}, {}}, rows);
    CHECK((split(rows, 2) == Plan{{{0, rows}, 0}}) == (rows == 8));
  }
}

TEST_CASE("a measured split gives single rows where they end first") {
  MeasuredSplit split;
  call(split, {{.per_row = 1000}, {.per_row = 1500}, {.per_row = 40'000}}, 300);
  CHECK(sizes(split(1, 3), 3) == std::vector<std::size_t>{1, 0, 0});
  CHECK(sizes(split(2, 3), 3) == std::vector<std::size_t>{1, 1, 0});
  CHECK(sizes(split(5, 3), 3) == std::vector<std::size_t>{3, 2, 0});
}

TEST_CASE("a split of any type hands on devices and calls") {
  AnySplit any = MeasuredSplit{};
  CHECK(any.observes());
  const std::vector<DeviceId> devices{{.kind = "host", .index = 0}, {.kind = "cuda", .index = 0}};
  any.begin(devices.data(), devices.size());
  CHECK(sizes(any(110, 2), 2) == std::vector<std::size_t>{10, 100});
  AnySplit copy = any;
  call(copy, {{.per_row = 1000}, {.per_row = 4000}}, 1000);
  call(copy, {{.per_row = 1000}, {.per_row = 4000}}, 1000);
  CHECK(sizes(copy(1000, 2), 2) == std::vector<std::size_t>{800, 200});
  CHECK(sizes(any(110, 2), 2) == std::vector<std::size_t>{10, 100});
  REQUIRE(copy.get_if<MeasuredSplit>() != nullptr);
  CHECK(copy.get_if<MeasuredSplit>()->weights(1000, 2)[0] == doctest::Approx(0.8));
  CHECK(copy.get_if<EvenSplit>() == nullptr);
  CHECK_FALSE(AnySplit().observes());
  CHECK(AnySplit().get_if<MeasuredSplit>() == nullptr);
}

TEST_CASE("any number of rows is planned") {
  for (const std::size_t rows : {std::size_t{1} << 53U, std::size_t{1} << 63U, SIZE_MAX - 1, SIZE_MAX}) {
    for (const std::size_t devices : {1U, 2U, 3U}) {
      CAPTURE(rows);
      CAPTURE(devices);
      fanout::check_plan(MeasuredSplit{}(rows, devices), rows, devices);
    }
  }
}
