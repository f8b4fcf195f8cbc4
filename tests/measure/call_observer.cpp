// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/measure/call_observer.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/fork.hpp"
#include "support/skip.hpp"

using fanout::CallTimes;
using fanout::detail::CallObserver;
using fanout::detail::ProcessObserver;

namespace {

class CountsCalls final : public CallObserver {
 public:
  void ended(const CallTimes&) noexcept override { ++calls; }
  int calls = 0;  // not atomic: one call at a time
};

}  // namespace

TEST_CASE("the observer of the process is told of calls until it is unset") {
  ProcessObserver process;
  CountsCalls counts;
  CHECK_FALSE(process.exists());
  process.ended({});
  CHECK(process.set(counts));
  CHECK(process.exists());
  process.ended({});
  process.ended({});
  CHECK(counts.calls == 2);
  process.unset(counts);
  CHECK_FALSE(process.exists());
  process.ended({});
  CHECK(counts.calls == 2);
}

TEST_CASE("a process has one observer at a time") {
  ProcessObserver process;
  CountsCalls first;
  CountsCalls second;
  CHECK(process.set(first));
  CHECK_FALSE(process.set(second));
  CHECK_FALSE(process.set(first));
  process.unset(second);  // which is none
  process.ended({});
  CHECK(first.calls == 1);
  CHECK(second.calls == 0);
  process.unset(first);
  CHECK(process.set(second));
}

TEST_CASE("an observer is called by one thread at a time") {
  ProcessObserver process;
  CountsCalls counts;
  REQUIRE(process.set(counts));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&process] {
      for (int i = 0; i < 10'000; ++i) process.ended({});
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counts.calls == 40'000);
}

TEST_CASE("the observer of a parent does not count in the child of a fork, which may have its own") {
  if (!fanout_test::can_fork) return fanout_test::skip(fanout_test::cannot_fork);
  ProcessObserver process;
  CountsCalls counts;
  REQUIRE(process.set(counts));
  const int code = fanout_test::in_child([&] {
    process.ended({});
    if (counts.calls != 0) return 1;
    CountsCalls own;
    if (!process.set(own)) return 2;
    process.ended({});
    process.unset(counts);
    process.ended({});
    return own.calls == 2 && counts.calls == 0 ? 0 : 3;
  });
  CHECK(code == 0);
}
