// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/sync/processor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

using fanout::detail::Processor;

TEST_CASE("pausing returns, and a processor's counter goes on while its thread sleeps") {
  Processor::pause();
  const auto before = Processor::ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK((Processor::ticks() > before) == Processor::has_counter);
}

TEST_CASE("a processor without a known counter stands at 0") {
  CHECK_FALSE(fanout::detail::WithoutCounter::has_counter);
  CHECK(fanout::detail::WithoutCounter::ticks() == 0);
  CHECK(fanout::detail::WithoutCounter::frequency() == 0);
}
