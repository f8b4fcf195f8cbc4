// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/measure/call_totals.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/plan/call_times.hpp>

using fanout::CallTimes;
using fanout::DeviceId;
using fanout::Plan;
using fanout::ShardTimes;
using fanout::detail::CallTotals;

namespace {

const std::array<DeviceId, 3> ids{DeviceId{"host", 0}, DeviceId{"toy", 1}, DeviceId{"host", 2}};
// Two shards on host:0, one on toy:1, none on host:2.
const Plan planned{{{0, 10}, 0}, {{10, 16}, 1}, {{16, 20}, 0}};
const std::array<ShardTimes, 3> times_of_shards{
    ShardTimes{.began = 5, .forward = 8, .returned = 20, .ended = 20, .bytes_in = 0, .bytes_out = 0, .thread = 1},
    ShardTimes{.began = 6, .forward = 16, .returned = 26, .ended = 46, .bytes_in = 7, .bytes_out = 9, .thread = 1},
    ShardTimes{.began = 20, .forward = 21, .returned = 30, .ended = 31, .bytes_in = 0, .bytes_out = 0, .thread = 2}};

CallTimes some_call() {
  return {.plan = &planned,
          .devices = ids.data(),
          .device_count = ids.size(),
          .shards = times_of_shards.data(),
          .began = 1'000'000,
          .planned = 4,
          .joined = 50,
          .ended = 57,
          .thread = 1};
}

/// Calls, shards, rows, bytes in and out, and the times of scatter, forward and wait.
std::vector<std::int64_t> numbers(const fanout::detail::DeviceTotals& device) {
  const auto signed_of = [](std::uint64_t x) { return static_cast<std::int64_t>(x); };
  return {signed_of(device.calls),     signed_of(device.shards), signed_of(device.rows), signed_of(device.bytes_in),
          signed_of(device.bytes_out), device.scatter,           device.forward,         device.wait};
}

}  // namespace

TEST_CASE("totals add up the times of calls, on each device and in all") {
  CallTotals totals;
  totals.add(some_call());
  CallTimes asynchronous = some_call();
  asynchronous.idle = 1000;
  asynchronous.ended += 1000;
  asynchronous.asynchronous = true;
  totals.add(asynchronous);
  CHECK(totals.calls == 2);
  CHECK(totals.failed == 0);
  CHECK(totals.plan == 2 * 4);
  CHECK(totals.shards == 2 * 46);
  CHECK(totals.gather == 2 * 7);
  REQUIRE(totals.devices.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(totals.devices[i].id == ids[i]);
  CHECK(numbers(totals.devices[0]) ==
        std::vector<std::int64_t>{2, 4, 28, 0, 0, 2 * (3 + 1), 2 * (12 + 9), 2 * (0 + 1)});
  CHECK(numbers(totals.devices[1]) == std::vector<std::int64_t>{2, 2, 12, 14, 18, 2 * 10, 2 * 10, 2 * 20});
  CHECK(numbers(totals.devices[2]) == std::vector<std::int64_t>(8));
}

TEST_CASE("useful time of the host is that of shards that the calling thread ran on host devices") {
  CallTotals totals;
  totals.add(some_call());
  CHECK(totals.host_useful == 12);  // not that of toy:1, nor that of the other thread
}

TEST_CASE("a failed call is only counted") {
  CallTotals totals;
  CallTimes call = some_call();
  call.failed = true;
  totals.add(call);
  CHECK(totals.calls == 0);
  CHECK(totals.failed == 1);
  CHECK(totals.plan == 0);
  CHECK(totals.shards == 0);
  CHECK(totals.host_useful == 0);
  REQUIRE(totals.devices.size() == 3);  // the devices are known all the same
  CHECK(numbers(totals.devices[0]) == std::vector<std::int64_t>(8));
}

TEST_CASE("a device whose shards ran at the same time worked no longer than the call") {
  const Plan both_on_one{{{0, 10}, 0}, {{10, 20}, 0}};
  const std::array<ShardTimes, 2> at_once{ShardTimes{.began = 5, .forward = 6, .returned = 50, .ended = 50},
                                          ShardTimes{.began = 5, .forward = 6, .returned = 48, .ended = 48}};
  CallTimes call = some_call();
  call.plan = &both_on_one;
  call.shards = at_once.data();
  CallTotals totals;
  totals.add(call);
  CHECK(totals.devices[0].calls == 1);
  CHECK(totals.devices[0].forward == 46);
}
