// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

#include <fanout/base/duration.hpp>

using fanout::Duration;
using namespace std::chrono_literals;

static_assert(!fanout::DurationLike<int>);
static_assert(Duration().nanoseconds() == 0);
static_assert(Duration(50ms).nanoseconds() == 50'000'000);

TEST_CASE("a duration is made of a std::chrono duration of any unit") {
  CHECK(Duration(3ns).nanoseconds() == 3);
  CHECK(Duration(-2us).nanoseconds() == -2000);
  CHECK(Duration(1h).nanoseconds() == 3600LL * 1'000'000'000);
  CHECK(Duration(std::chrono::duration<double>(0.25)).nanoseconds() == 250'000'000);
  CHECK(Duration(std::chrono::duration<short, std::ratio<1, 3>>(short{1})).nanoseconds() == 333'333'333);
  CHECK(Duration(1s) == Duration(1000ms));
}

TEST_CASE("a duration that is too long to count is the longest") {
  CHECK(Duration(std::chrono::hours(3'000'000)).nanoseconds() == INT64_MAX);
  CHECK(Duration(std::chrono::hours(-3'000'000)).nanoseconds() == -INT64_MAX);
  CHECK(Duration(std::chrono::duration<double>(1e300)).nanoseconds() == INT64_MAX);
}
