// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/virtual_time.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

using fanout::detail::Clock;
using fanout::detail::later_by;
using fanout::detail::rounded;
using fanout::detail::time_for;
using fanout::detail::VirtualTime;

TEST_CASE("times are rounded to nanoseconds, and none is later than never") {
  CHECK(rounded(1.5) == 2);
  CHECK(rounded(1.4) == 1);
  CHECK(rounded(0) == 0);
  CHECK(rounded(1e30) == Clock::never);
  CHECK(rounded(std::numeric_limits<double>::quiet_NaN()) == Clock::never);
  static_assert(later_by(1, 2) == 3);
  static_assert(later_by(5, Clock::never) == Clock::never);
  static_assert(later_by(Clock::never, Clock::never) == Clock::never);
  CHECK(time_for(1000, 1e6) == 1'000'000);
  CHECK(time_for(0, 1e6) == 0);
  CHECK(time_for(1, 3) == 333'333'333);
  CHECK(time_for(1000, std::numeric_limits<double>::infinity()) == 0);
}

TEST_CASE("a virtual time only moves forward") {
  VirtualTime time;
  CHECK(time.now() == 0);
  time.raise(7);
  CHECK(time.now() == 7);
  time.raise(3);
  CHECK(time.now() == 7);
  CHECK(time.work(5, [](Clock::Time begin) { return begin + 10; }) == 17);  // begins at 7
  CHECK(time.work(20, [](Clock::Time begin) { return begin + 10; }) == 30);
  CHECK(time.now() == 30);
}

TEST_CASE("work of several threads is done one after the other in virtual time") {
  VirtualTime time;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&time] {
      for (int n = 0; n < 1000; ++n) time.work(0, [](Clock::Time begin) { return begin + 3; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(time.now() == 12'000);
}
