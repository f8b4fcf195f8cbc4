// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/wake_latency.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using fanout::detail::Ticks;
using fanout::detail::WakeLatency;

TEST_CASE("the wake-up latency starts at 50 us and follows the measured times") {
  WakeLatency cost;
  CHECK(cost.nanoseconds() == 50'000);
  for (int i = 0; i < 100; ++i) cost.note(Ticks::in(20'000));
  CHECK(cost.nanoseconds() > 18'000);
  CHECK(cost.nanoseconds() < 22'000);
}

TEST_CASE("one long wake-up changes the latency little") {
  WakeLatency cost;
  cost.note(Ticks::in(1'000'000'000));
  CHECK(cost.nanoseconds() < 120'000);
  for (int i = 0; i < 100; ++i) cost.note(-5);
  CHECK(cost.nanoseconds() >= 1'000);
}
