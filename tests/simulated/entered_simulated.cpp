// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/entered_simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <thread>

using fanout::detail::callers_time;
using fanout::detail::EnteredSimulated;
using fanout::detail::SimulatedState;
using fanout::detail::Simulation;

TEST_CASE("a thread's time is that of the device that it has entered last, in each simulation") {
  Simulation one;
  Simulation other;
  SimulatedState a(one, 0, 1'000'001, {});
  SimulatedState b(one, 1, 1'000'002, {});
  SimulatedState c(other, 0, 1'000'003, {});
  one.now.raise(5);
  CHECK(&callers_time(a) == &one.now);
  CHECK_FALSE(EnteredSimulated::has_entered(a));
  {
    const EnteredSimulated in_a(a);
    CHECK(a.busy().now() == 5);  // work cannot begin before the thread is there
    CHECK(&callers_time(b) == &a.busy());
    CHECK(&callers_time(c) == &other.now);
    a.busy().raise(9);
    {
      const EnteredSimulated in_c(c);
      CHECK(c.busy().now() == 0);
      CHECK(&callers_time(a) == &a.busy());
      const EnteredSimulated in_b(b);
      CHECK(b.busy().now() == 9);
      CHECK(&callers_time(a) == &b.busy());
      CHECK(EnteredSimulated::has_entered(a));
      CHECK(EnteredSimulated::has_entered(b));
      CHECK(EnteredSimulated::has_entered(c));
    }
    CHECK(&callers_time(a) == &a.busy());
    CHECK_FALSE(EnteredSimulated::has_entered(b));
    std::thread([&] { CHECK(&callers_time(a) == &one.now); }).join();
  }
  CHECK(&callers_time(a) == &one.now);
  CHECK(one.now.now() == 5);
}
