// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <chrono>

#include <fanout/call/call_state.hpp>

TEST_CASE("a call state refers to its call's settings and has its own number and outputs") {
  const fanout::Plan plan{{.rows = {0, 4}, .device = 2}};
  const fanout::detail::CallSettings settings{.seed = 5};
  fanout::detail::CallState frame(plan, settings, {.number = 6});
  CHECK(frame.plan == plan);
  CHECK(&frame.settings == &settings);
  CHECK(frame.number == 6);
  CHECK(frame.outputs.space() == fanout::host_memory);
  CHECK(frame.outputs.get(0, 4, 8).buffer == frame.outputs.get(0, 4, 8).buffer);
}

TEST_CASE("a call that begins now has a deadline if its settings have one") {
  using fanout::detail::CallStart;
  using fanout::detail::Clock;
  CHECK(CallStart::now({}).deadline == Clock::never);
  const Clock::Time before = Clock::now();
  const Clock::Time deadline = CallStart::now({.deadline = std::chrono::milliseconds(1)}).deadline;
  CHECK(deadline > before);
  CHECK(deadline != Clock::never);
}
