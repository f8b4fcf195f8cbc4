// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/ticks.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>

#include <fanout/sync/clock.hpp>

using fanout::Clock;
using fanout::Ticks;

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
  for (const std::int64_t nanoseconds : {std::int64_t{1'000}, std::int64_t{50'000}, std::int64_t{1'000'000'000}}) {
    const std::int64_t back = Ticks::nanoseconds(Ticks::in(nanoseconds));
    CHECK(back >= nanoseconds - nanoseconds / 100 - 1);
    CHECK(back <= nanoseconds + nanoseconds / 100 + 1);
  }
}

TEST_CASE("more ticks than can be counted are for ever") { CHECK(Ticks::in(INT64_MAX) > INT64_MAX / 8); }
