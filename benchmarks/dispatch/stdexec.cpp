// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// stdexec, the reference implementation of std::execution, on its static_thread_pool of two threads: contenders bulk
// and when_all.

#include <exec/static_thread_pool.hpp>
#include <stdexec/execution.hpp>

#include <atomic>

#include <dispatch/cases.hpp>

int main(int argc, char** argv) {
  using benchmarks::Bodies;
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  const std::string contender = slice.contender() == "default" ? "bulk" : slice.contender();
  exec::static_thread_pool pool(2);
  const auto scheduler = pool.get_scheduler();
  // Each thread of the pool binds itself: a task that waits for the other one runs on another thread.
  std::atomic<std::size_t> arrived{0};
  const auto binding = [&slice, &arrived] {
    benchmarks::bind_to(slice.core(arrived.fetch_add(1)));
    while (arrived.load() < 2) sched_yield();
  };
  const auto both = [&scheduler](auto first, auto second) {
    return stdexec::when_all(stdexec::schedule(scheduler) | stdexec::then(first),
                             stdexec::schedule(scheduler) | stdexec::then(second));
  };
  stdexec::sync_wait(both(binding, binding));
  if (contender == "bulk") {
    return benchmarks::run_dispatch(slice, [&scheduler](const Bodies& bodies) {
      stdexec::sync_wait(stdexec::schedule(scheduler) |
                         stdexec::bulk(stdexec::par, std::size_t{2}, [&bodies](std::size_t i) { bodies(i); }));
    });
  }
  if (contender == "when_all") {
    return benchmarks::run_dispatch(slice, [&both](const Bodies& bodies) {
      stdexec::sync_wait(both([&bodies] { bodies(0); }, [&bodies] { bodies(1); }));
    });
  }
  slice.fault("no contender " + contender);
}
