// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/call/shard_ends.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>

#include <fanout/call/call_outputs.hpp>

#include "support/message_of.hpp"

using fanout_test::message_of;
using fanout_test::says;

namespace {

using fanout::Plan;
using fanout::detail::ShardRemains;
using EndsBase = fanout::detail::ShardEnds;

const fanout::DeviceId end_hosts[] = {{.kind = "host", .index = 0}, {.kind = "host", .index = 1}};
const Plan three_shards_on_two{
    {.rows = {0, 2}, .device = 1}, {.rows = {2, 5}, .device = 0}, {.rows = {5, 6}, .device = 1}};

/// What a shard leaves, inside of a larger object.
struct LeftBehind {
  std::array<char, 40> before{};
  ShardRemains remains;
  std::array<char, 8> behind{};
};

struct OpenedEnds : EndsBase {
  explicit OpenedEnds(const fanout::detail::CallSettings& settings, bool shards_may_meet = false)
      : EndsBase(three_shards_on_two, settings, fanout::detail::CallStart::now(settings), end_hosts, shards_may_meet) {
    remains_are(cells[0].remains, sizeof(LeftBehind));
  }
  using EndsBase::check_ends;
  using EndsBase::holds;
  using EndsBase::is_late;
  using EndsBase::late_shards;
  using EndsBase::plan_in_time;

  std::array<LeftBehind, 3> cells;
};

const fanout::detail::CallSettings default_settings;

void note_failure(OpenedEnds& ends, std::size_t shard, const char* why) {
  ends.cells[shard].remains.failed_in_forward = true;
  try {
    throw std::runtime_error(why);
  } catch (...) {
    ends.note_exception(ends.cells[shard].remains);
  }
}

}  // namespace

TEST_CASE("shards that left nothing behind end in silence") {
  OpenedEnds ends(default_settings);
  for (LeftBehind& cell : ends.cells) ends.note_success(cell.remains);
  CHECK_NOTHROW(ends.check_ends());
  CHECK_FALSE(ends.holds());
}

TEST_CASE("what shards threw is found in their remains, wherever these lie") {
  OpenedEnds ends(default_settings);
  note_failure(ends, 1, "of the second");
  note_failure(ends, 2, "of the third");
  CHECK(ends.holds());
  const std::string message = message_of<fanout::ReplicaError>([&] { ends.check_ends(); });
  CHECK(says(message, "host:0", "of the second", "host:1", "of the third"));
  CHECK(message.find("host:1") > message.find("of the second"));
}

TEST_CASE("shards that end after the deadline are late, and the others keep their rows without gaps") {
  const fanout::detail::CallSettings settings{.deadline = std::chrono::nanoseconds(0)};
  OpenedEnds ends(settings);
  ends.cells[1].remains.lateness.end(true);
  ends.cells[0].remains.lateness.end(false);
  ends.note_end(2, ends.cells[2].remains);  // it ends now, after the deadline
  CHECK_FALSE(ends.is_late(1));
  const auto late = ends.late_shards();
  REQUIRE(late.size() == 2);
  CHECK(late[0].rows == fanout::RowRange{0, 2});
  CHECK(late[1].device == end_hosts[1]);
  CHECK(ends.plan_in_time() == Plan{{.rows = {0, 3}, .device = 0}});
}
