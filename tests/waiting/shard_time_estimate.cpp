// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/shard_time_estimate.hpp>

#include <doctest/doctest.h>

#include <cstdint>

#include <fanout/sync/ticks.hpp>

using fanout::detail::ShardTimeEstimate;
using fanout::detail::Ticks;

namespace {

/// Whether so many ticks are about so many nanoseconds.
bool is_about(std::int64_t ticks, std::int64_t expected) {
  const std::int64_t found = Ticks::nanoseconds(ticks);
  return found >= expected - expected / 10 - 2 && found <= expected + expected / 10 + 2;
}

}  // namespace

TEST_CASE("nothing is expected before the first") {
  ShardTimeEstimate time;
  CHECK(time.expected(5) == ShardTimeEstimate::unknown);
  time.note(5, 0);
  CHECK(time.expected(5) >= 0);
}

TEST_CASE("the estimate is proportional to the rows") {
  ShardTimeEstimate time;
  time.note(1000, Ticks::in(50'000));
  CHECK(is_about(time.expected(1000), 50'000));
  CHECK(is_about(time.expected(2000), 100'000));
  CHECK(is_about(time.expected(10), 500));
  CHECK(is_about(time.expected(0), 50'000));  // of no rows nothing better is known
  time.note(0, Ticks::in(70'000));
  CHECK(is_about(time.expected(0), 70'000));
  CHECK(is_about(time.expected(9), 70'000));
}

TEST_CASE("one outlier at most doubles the estimate, and a lasting change is learnt") {
  ShardTimeEstimate time;
  time.note(8, Ticks::in(10'000));
  time.note(8, Ticks::in(100'000'000));
  CHECK(time.expected(8) <= Ticks::in(20'000) + 201);
  for (int i = 0; i < 20; ++i) time.note(8, Ticks::in(10'000));
  CHECK(is_about(time.expected(8), 10'000));
  for (int i = 0; i < 20; ++i) time.note(8, Ticks::in(1'000'000));
  CHECK(is_about(time.expected(8), 1'000'000));
}

TEST_CASE("an uncountable time is clamped to a long one") {
  ShardTimeEstimate time;
  time.note(8, INT64_MAX / 2);
  CHECK(time.expected(8) > 2'000'000'000);
  time.note(8, -5);
  CHECK(time.expected(8) > 0);
}
