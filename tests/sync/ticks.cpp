// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/ticks.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

#include <fanout/sync/clock.hpp>

using fanout::detail::Clock;
using fanout::detail::Ticks;

TEST_CASE("ticks are counted in nanoseconds, to some percent, and back") {
  // The best of some tries, since this thread may be made to stand back between two looks.
  double best = 1;
  for (int i = 0; i < 20 && best > 0.05; ++i) {
    const Clock::Time begin = Clock::now();
    const std::int64_t first = Ticks::now();
    while (Clock::now() - begin < 3'000'000) {
    }
    const auto passed = static_cast<double>(Clock::now() - begin);
    const double off = static_cast<double>(Ticks::nanoseconds(Ticks::now() - first)) / passed - 1;
    best = off < 0 ? (-off < best ? -off : best) : (off < best ? off : best);
  }
  CHECK(best < 0.05);
  const std::int64_t tick = Ticks::nanoseconds(1) + 1;  // rounded up, since what is counted is whole ticks
  for (const std::int64_t nanoseconds : {std::int64_t{1'000}, std::int64_t{50'000}, std::int64_t{1'000'000'000}}) {
    const std::int64_t back = Ticks::nanoseconds(Ticks::in(nanoseconds));
    CHECK(back >= nanoseconds - nanoseconds / 100 - tick);
    CHECK(back <= nanoseconds + nanoseconds / 100 + tick);
  }
}

TEST_CASE("more ticks, or nanoseconds, than can be counted are forever") {
  const std::int64_t ticks = Ticks::in(INT64_MAX);
  const std::int64_t nanoseconds = Ticks::nanoseconds(INT64_MAX);
  CHECK(ticks > 0);
  CHECK(nanoseconds > 0);
  const bool saturates = ticks == Ticks::forever || nanoseconds == Ticks::forever;  // a tick is a nanosecond, or not
  CHECK(saturates);
}

TEST_CASE("the length of a tick is found although the thread loses its core at any one point of the measurement") {
  constexpr std::int64_t ticks_in_100_ns = 7;
  for (int stops_at = 0; stops_at < 40; ++stops_at) {
    CAPTURE(stops_at);
    std::int64_t time = 1'000'000;  // in nanoseconds
    int reads = 0;
    const auto pass = [&] { time += reads++ == stops_at ? 4'000'000 : 20; };
    const auto clock = [&] {
      pass();
      return time;
    };
    const auto counter = [&] {
      pass();
      return time * ticks_in_100_ns / 100;
    };
    const double expected = 100.0 / ticks_in_100_ns;
    const double found = fanout::detail::measured_rate(clock, counter);
    CHECK(found > 0.99 * expected);
    CHECK(found < 1.01 * expected);
  }
  CHECK(fanout::detail::measured_rate(&Clock::now, [] { return std::int64_t{5}; }) == 1);
}
