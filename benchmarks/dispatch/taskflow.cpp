// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Taskflow: contenders run, a graph of two tasks on an executor with two workers, and async, one task on an executor
// with one worker, bound to the second core, beside the caller.

#include <taskflow/taskflow.hpp>

#include <atomic>

#include <dispatch/cases.hpp>

int main(int argc, char** argv) {
  using benchmarks::Bodies;
  benchmarks::Slice slice(argc, argv);
  slice.environment();
  const std::string contender = slice.contender() == "default" ? "run" : slice.contender();
  if (contender == "async") {
    tf::Executor executor(1);
    executor.async([&slice] { benchmarks::bind_to(slice.core(1)); }).get();
    return benchmarks::run_dispatch(slice, [&executor](const Bodies& bodies) {
      auto done = executor.async([&bodies] { bodies(1); });
      bodies(0);
      done.get();
    });
  }
  if (contender == "run") {
    tf::Executor executor(2);
    // Each worker binds itself: a task that waits for the other one runs on another worker.
    std::atomic<std::size_t> arrived{0};
    tf::Taskflow binding;
    for (int i = 0; i < 2; ++i) {
      binding.emplace([&slice, &arrived] {
        benchmarks::bind_to(slice.core(arrived.fetch_add(1)));
        while (arrived.load() < 2) sched_yield();
      });
    }
    executor.run(binding).wait();
    const Bodies* bodies_now = nullptr;
    tf::Taskflow both;
    both.emplace([&bodies_now] { (*bodies_now)(0); }, [&bodies_now] { (*bodies_now)(1); });
    return benchmarks::run_dispatch(slice, [&](const Bodies& bodies) {
      bodies_now = &bodies;
      executor.run(both).wait();
    });
  }
  slice.fault("no contender " + contender);
}
