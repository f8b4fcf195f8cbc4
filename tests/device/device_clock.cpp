// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device_clock.hpp>

#include <doctest/doctest.h>

#include <cstdint>

#include <fanout/device/host_device.hpp>
#include <fanout/sync/clock.hpp>

#include "device/clock_device.hpp"
#include "device/toy_device.hpp"

using fanout::detail::Clock;
using fanout::detail::DeviceClock;
using fanout::detail::HasOwnClock;
using fanout_test::ClockDevice;

namespace {

struct CountsSeconds {
  double time() const { return 0; }
};

}  // namespace

static_assert(HasOwnClock<ClockDevice>);
static_assert(!HasOwnClock<fanout::HostDevice>);
static_assert(!HasOwnClock<CountsSeconds>, "nanoseconds");

TEST_CASE("a device without a clock of its own has that of the process") {
  const fanout_test::ToyDevice device(0);
  for (const DeviceClock& clock : {DeviceClock(), DeviceClock::of(device)}) {
    CHECK_FALSE(clock.is_own());
    const Clock::Time before = Clock::now();
    const Clock::Time now = clock.now();
    const Clock::Time done = clock.done();
    CHECK(before <= now);
    CHECK(now <= done);
    CHECK(done <= Clock::now());
  }
}

TEST_CASE("a device's own clock says the time of the thread, and when the device is done") {
  const ClockDevice device(1);
  const DeviceClock clock = DeviceClock::of(device);
  CHECK(clock.is_own());
  ClockDevice::all_at(1000);
  device.time_of_device() = 5000;
  CHECK(clock.now() == 1000);
  CHECK(clock.done() == 5000);
  CHECK(clock.now() == 1000);
  device.time_of_device() += 70;
  ClockDevice::time_of_thread() += 3;
  CHECK(clock.now() == 1003);
  CHECK(clock.done() == 5070);
}
