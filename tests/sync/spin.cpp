// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/spin.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <thread>

#include <fanout/sync/clock.hpp>

using fanout::detail::Clock;
using fanout::detail::spin;
using fanout::detail::Ticks;

TEST_CASE("a condition that already holds is checked once, as is any condition with no spin time") {
  int asked = 0;
  const auto yes = [&asked] { return ++asked != 0; };
  const auto no = [&asked] { return ++asked < 0; };
  CHECK(spin(Ticks::in(1'000'000), yes));
  CHECK(asked == 1);
  CHECK_FALSE(spin(0, no));
  CHECK(asked == 2);
}

TEST_CASE("spinning ends when its time is over") {
  for (const std::int64_t nanoseconds : {20'000, 2'000'000}) {
    int asked = 0;
    const Clock::Time begin = Clock::now();
    CHECK_FALSE(spin(Ticks::in(nanoseconds), [&asked] { return ++asked < 0; }));
    CHECK(Clock::now() - begin >= nanoseconds / 2);
    CHECK(asked > 10);
  }
}

TEST_CASE("an unlimited spin ends when the condition holds") {
  std::atomic<bool> flag{false};
  std::thread other([&] { flag = true; });
  CHECK(spin(Ticks::forever, [&] { return flag.load(); }));
  other.join();
}
