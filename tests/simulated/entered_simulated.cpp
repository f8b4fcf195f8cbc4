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
    CHECK(callers_time(b).now() == 5);  // work cannot begin before the thread is there
    CHECK(&callers_time(b) == &in_a.time());
    CHECK(&callers_time(c) == &other.now);
    callers_time(a).raise(9);
    {
      const EnteredSimulated in_c(c);
      CHECK(callers_time(c).now() == 0);
      CHECK(&callers_time(a) == &in_a.time());
      const EnteredSimulated in_b(b);
      CHECK(callers_time(b).now() == 9);
      CHECK(&callers_time(a) == &in_b.time());
      CHECK(EnteredSimulated::has_entered(a));
      CHECK(EnteredSimulated::has_entered(b));
      CHECK(EnteredSimulated::has_entered(c));
    }
    CHECK(&callers_time(a) == &in_a.time());
    CHECK_FALSE(EnteredSimulated::has_entered(b));
    std::thread([&] { CHECK(&callers_time(a) == &one.now); }).join();
  }
  CHECK(&callers_time(a) == &one.now);
  CHECK(one.now.now() == 5);
  const EnteredSimulated again(a);
  CHECK(callers_time(a).now() == 9);  // after what was there before
}

TEST_CASE("a thread of its own moves neither the simulation nor a device") {
  Simulation simulation;
  SimulatedState a(simulation, 0, 1'000'004, {});
  {
    const fanout::detail::SimulatedThread thread(simulation, 7);
    CHECK(callers_time(a).now() == 7);
    {
      const EnteredSimulated in_a(a);
      callers_time(a).raise(9);
    }
    CHECK(callers_time(a).now() == 7);
  }
  CHECK(callers_time(a).now() == 0);
  CHECK(a.left().now() == 9);
}
