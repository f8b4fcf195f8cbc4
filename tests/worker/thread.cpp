// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/worker/thread.hpp>

#include <doctest/doctest.h>

#include <cfenv>
#include <string>
#include <vector>

#include <pthread.h>

TEST_CASE("threads start in the standard floating-point modes, and their maker keeps its own") {
  std::fesetround(FE_UPWARD);
  int mode = -1;
  pthread_t thread{};
  const auto enter = [](void* seen) -> void* {
    *static_cast<int*>(seen) = std::fegetround();
    return nullptr;
  };
  const bool started = fanout::detail::start_thread(std::vector<int>{}, enter, &mode, "a test", &thread);
  CHECK(std::fegetround() == FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  REQUIRE(started);
  ::pthread_join(thread, nullptr);
  CHECK(mode == FE_TONEAREST);
}
