// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/recovery/device_health.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

using fanout::EvenSplit;
using fanout::Plan;
using fanout::detail::DeviceHealth;

TEST_CASE("a device is left out after its second failure, until it is readmitted") {
  DeviceHealth health(3);
  health.note_failure(1);
  CHECK(health.failures(1) == 1);
  CHECK_FALSE(health.is_left_out(1));
  CHECK_FALSE(health.leaves_out());
  health.note_failure(1);
  CHECK(health.is_left_out(1));
  CHECK(health.leaves_out());
  CHECK_FALSE(health.is_left_out(0));
  SUBCASE("it alone") {
    health.readmit(1);
    CHECK(health.failures(1) == 0);
    CHECK_FALSE(health.leaves_out());
  }
  SUBCASE("another one stays left out") {
    for (int i = 0; i < 2; ++i) health.note_failure(2);
    health.readmit(1);
    CHECK_FALSE(health.is_left_out(1));
    CHECK(health.is_left_out(2));
    CHECK(health.leaves_out());
  }
}

TEST_CASE("shards of a failed device go to the others in turn, but not to those that are left out") {
  DeviceHealth health(4);
  CHECK(health.other_than(1, 0) == 2);
  CHECK(health.other_than(1, 1) == 3);
  CHECK(health.other_than(1, 2) == 0);
  CHECK(health.other_than(1, 3) == 2);
  health.note_failure(2);
  CHECK(health.other_than(1, 0) == 3);  // which has not failed yet
  health.note_failure(2);
  CHECK(health.other_than(1, 0) == 3);
  for (int i = 0; i < 2; ++i) health.note_failure(3);
  CHECK(health.other_than(1, 0) == 0);
  for (int i = 0; i < 2; ++i) health.note_failure(0);
  CHECK(health.other_than(1, 0) == 1);
  CHECK(DeviceHealth(1).other_than(0, 5) == 0);
}

TEST_CASE("the others share the rows of a device that is left out, in proportion to their own") {
  DeviceHealth health(3);
  for (int i = 0; i < 2; ++i) health.note_failure(1);
  const Plan plan{{{0, 10}, 0}, {{10, 40}, 1}, {{40, 60}, 2}};
  CHECK(health.without_left_out(plan) == Plan{{{0, 20}, 0}, {{20, 60}, 2}});
  for (std::size_t rows = 0; rows < 50; ++rows) {
    const Plan without = health.without_left_out(EvenSplit{}(rows, 3));
    fanout::check_plan(without, rows, 3);  // all rows, without gaps
    for (const fanout::Shard& shard : without) CHECK((shard.device != 1 || rows == 0));
  }
}

TEST_CASE("all rows are planned while another thread leaves devices out and readmits them") {
  DeviceHealth health(4);
  Plan plan;
  for (std::size_t i = 0; i < 400; ++i) plan.add({.rows = {i, i + 1}, .device = i % 4});
  std::atomic<bool> ends{false};
  std::thread changing([&] {
    for (std::size_t i = 0; !ends; ++i) {
      for (int twice = 0; twice < 2; ++twice) health.note_failure(i % 4);
      health.readmit((i + 2) % 4);
    }
  });
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    try {
      fanout::check_plan(health.without_left_out(plan), 400, 4);
    } catch (const fanout::InvalidArgument&) {
      ++wrong;
    }
  }
  ends = true;
  changing.join();
  CHECK(wrong == 0);
}

TEST_CASE("a plan in which only left-out devices have rows goes to other devices") {
  DeviceHealth health(3);
  for (int i = 0; i < 2; ++i) health.note_failure(0);
  CHECK(health.without_left_out(Plan{{{0, 5}, 0}}) == Plan{{{0, 5}, 1}});
  CHECK(health.without_left_out(Plan{{{0, 5}, 0}, {{5, 9}, 0}}) == Plan{{{0, 5}, 1}, {{5, 9}, 2}});
  for (int i = 0; i < 2; ++i) health.note_failure(1);
  for (int i = 0; i < 2; ++i) health.note_failure(2);
  CHECK(health.without_left_out(Plan{{{0, 5}, 0}}) == Plan{{{0, 5}, 0}});  // no other device is left
}

TEST_CASE("a dealt plan without left-out devices is dealt, too") {
  DeviceHealth health(2);
  for (int i = 0; i < 2; ++i) health.note_failure(0);
  Plan plan{{{0, 4}, 0}, {{4, 8}, 1}};
  CHECK_FALSE(health.without_left_out(plan).is_dealt());
  plan.deal();
  CHECK(health.without_left_out(plan).is_dealt());
}
