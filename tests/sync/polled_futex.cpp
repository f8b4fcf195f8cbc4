// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/polled_futex.hpp>

#include <doctest/doctest.h>

using fanout::detail::Clock;
using fanout::detail::PolledFutex;

TEST_CASE("without a futex, a sleeping thread looks again after 50 us, and not after the time until which it sleeps") {
  const Clock::Time begin = Clock::now();
  PolledFutex::wait(nullptr, 0);
  CHECK(Clock::now() - begin >= 50'000);
  const Clock::Time past = Clock::now();
  PolledFutex::wait_until(nullptr, 0, past);
  PolledFutex::wait_until(nullptr, 0, past + 1'000'000'000);
  CHECK(Clock::now() - past >= 50'000);
}
