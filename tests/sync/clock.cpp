// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <chrono>

#include <fanout/sync/clock.hpp>

using fanout::detail::Clock;

TEST_CASE("the clock does not go back, and counts nanoseconds") {
  using namespace std::chrono_literals;
  const Clock::Time first = Clock::now();
  const Clock::Time later = Clock::after(20ms);
  CHECK(later >= first + 20'000'000);
  CHECK(later <= Clock::now() + 20'000'000);
  CHECK(later < Clock::never);
}

TEST_CASE("a time too far away is never") { CHECK(Clock::after(std::chrono::hours(3'000'000)) == Clock::never); }
