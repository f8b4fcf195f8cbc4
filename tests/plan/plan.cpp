// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/plan/plan.hpp>

#include "support/message_of.hpp"

using fanout::check_plan;
using fanout::InvalidArgument;
using fanout::Plan;
using fanout::Shard;
using fanout_test::message_of;
using fanout_test::says;

namespace {

/// One row for each of the shards, which take the devices in turn.
constexpr Plan single_rows(std::size_t shards) {
  Plan plan;
  for (std::size_t i = 0; i < shards; ++i) plan.add({.rows = {i, i + 1}, .device = i % 3});
  return plan;
}

constexpr bool holds_single_rows(const Plan& plan, std::size_t shards) {
  std::size_t i = 0;
  for (const Shard& shard : plan) {
    if (!(shard == Shard{.rows = {i, i + 1}, .device = i % 3}) || !(plan[i] == shard)) return false;
    ++i;
  }
  return i == shards && plan.size() == shards && plan.rows() == shards;
}

static_assert(Plan().size() == 0);
static_assert(Plan().rows() == 0);
static_assert(Plan{{{0, 1}, 0}} != Plan());
static_assert(holds_single_rows(single_rows(8), 8));
static_assert(holds_single_rows(single_rows(9), 9), "more than eight shards, while compiling");
static_assert(Plan{{{0, 2}, 1}, {{2, 3}, 0}}[0].device == 1);
static_assert(Plan{{{0, 2}, 1}, {{2, 3}, 0}}.rows() == 3);
static_assert(Plan{{{0, 2}, 0}} == Plan{{{0, 2}, 0}});
static_assert(Plan{{{0, 2}, 0}} != Plan{{{0, 2}, 1}});
static_assert(Plan{{{0, 2}, 0}} != Plan{{{0, 1}, 0}});
static_assert(Plan{{{0, 2}, 0}} != Plan{{{0, 2}, 0}, {{2, 2}, 1}});
static_assert((check_plan(Plan{{{0, 2}, 0}, {{2, 3}, 1}}, 3, 2), true));

std::string refusal(const Plan& plan, std::size_t rows, std::size_t devices) {
  return message_of<InvalidArgument>([&] { check_plan(plan, rows, devices); });
}

}  // namespace

TEST_CASE("a plan keeps its shards in the order they were added, few or many") {
  for (std::size_t shards = 0; shards < 40; ++shards) {
    CAPTURE(shards);
    CHECK(holds_single_rows(single_rows(shards), shards));
    CHECK(single_rows(shards) == single_rows(shards));
    CHECK(single_rows(shards) != single_rows(shards + 1));
  }
}

TEST_CASE("check_plan accepts whatever covers the rows in order") {
  CHECK_NOTHROW(check_plan({{{0, 30}, 0}}, 30, 1));
  CHECK_NOTHROW(check_plan({{{0, 15}, 0}, {{15, 30}, 1}}, 30, 2));
  CHECK_NOTHROW(check_plan({{{0, 15}, 1}, {{15, 20}, 0}, {{20, 30}, 1}}, 30, 2));  // a device twice, out of order
  CHECK_NOTHROW(check_plan({{{0, 0}, 0}, {{0, 30}, 1}, {{30, 30}, 2}}, 30, 3));    // shards without rows
  CHECK_NOTHROW(check_plan({{{0, 0}, 0}, {{0, 0}, 1}}, 0, 2));
  CHECK_NOTHROW(check_plan(single_rows(40), 40, 3));
}

TEST_CASE("check_plan refuses a gap, an overlap, a late start and a range that runs backwards") {
  CHECK(says(refusal({{{0, 10}, 0}, {{12, 30}, 1}}, 30, 2), "invalid plan", "at shard 1",
             "expected shards in row order that cover [0, 30) on devices 0 to 1", "found rows [12, 30)",
             "mend the split policy"));
  CHECK(says(refusal({{{0, 10}, 0}, {{9, 30}, 1}}, 30, 2), "at shard 1", "found rows [9, 30)"));
  CHECK(says(refusal({{{1, 30}, 0}}, 30, 2), "at shard 0", "found rows [1, 30)"));
  CHECK(says(refusal({{{0, 20}, 0}, {{20, 10}, 1}, {{10, 30}, 0}}, 30, 2), "at shard 1", "found rows [20, 10)"));
  CHECK(says(refusal({{{10, 20}, 1}, {{0, 10}, 0}}, 20, 2), "at shard 0", "found rows [10, 20)"));
}

TEST_CASE("check_plan refuses rows that are left out or too many, and a plan without shards") {
  CHECK(says(refusal({{{0, 10}, 0}}, 30, 2), "invalid plan", "at shard 1", "cover [0, 30)",
             "found an end after 10 rows"));
  CHECK(says(refusal({{{0, 31}, 0}}, 30, 2), "at shard 1", "found an end after 31 rows"));
  CHECK(says(refusal({}, 30, 2), "at shard 0", "found an end after 0 rows"));
  CHECK(says(refusal({}, 0, 2), "at shard 0", "found an end after 0 rows"));
  CHECK(says(refusal(single_rows(20), 21, 3), "at shard 20", "found an end after 20 rows"));
}

TEST_CASE("check_plan refuses a device that is not in the set") {
  CHECK(says(refusal({{{0, 10}, 0}, {{10, 30}, 2}}, 30, 2), "invalid plan", "at shard 1", "on devices 0 to 1",
             "found device 2"));
  CHECK(says(refusal(single_rows(20), 20, 2), "at shard 2", "found device 2"));
}
