// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/task.hpp>

#include <optional>
#include <utility>

#include "protocol.hpp"

namespace interleavings {

namespace {

/// A task with a result.
struct Adding : fanout::detail::Task {
  explicit Adding(int from) : sum(from) {
    prepare([](fanout::detail::Task& self) noexcept {
      auto& adding = static_cast<Adding&>(self);
      adding.sum.set(adding.sum.get() + 1);
    });
  }
  Plain<int> sum;
};

/// The owner destroys the task as soon as it is done, perhaps before the wake-up.
void one_waits() {
  std::optional<Adding> task(std::in_place, 1);
  fanout::detail::Task* const posted = &*task;
  run([&] { posted->run(); },
      [&] {
        check(task->wait(0, 0), "the task is done");
        check(task->sum.get() == 2, "its result is there");
        task.reset();
      });
}

void one_looks() {
  Adding task(1);
  run([&] { task.run(); },
      [&] {
        check(task.wait(fanout::detail::Ticks::forever, 0), "the task is done");
        check(task.sum.get() == 2, "its result is there");
      });
}

void two_wait() {
  Adding task(1);
  const auto wait = [&] {
    check(task.wait(0, 0), "the task is done");
    check(task.sum.get() == 2, "its result is there");
  };
  run([&] { task.run(); }, wait, wait);
}

void one_is_late() {
  Adding task(1);
  bool in_time = false;
  run([&] { task.run(); },
      [&] {
        in_time = task.wait(0, 0, 100'000);
        if (in_time) check(task.sum.get() == 2, "its result is there");
      });
  check(task.is_done() && task.sum.get() == 2, "the task is done at the end");
}

}  // namespace

Protocol task() {
  using enum Fault::How;
  return {
      "task",
      {{"one waits", one_waits},
       {"one looks", one_looks},
       {"two wait", two_wait},
       {"one is late", one_is_late, {.timeouts = 1}}},
      {
          {"worker/task.hpp", "state_.exchange(done, MemoryOrder::acq_rel)", relaxed, "one waits"},
          {"worker/task.hpp", "state_.exchange(done, MemoryOrder::acq_rel)", torn, "one waits"},
          {"worker/task.hpp", " unpark_all(state_)", skipped, "one waits"},
          {"worker/task.hpp", "return state_.load(MemoryOrder::acquire) == done", relaxed, "one waits"},
          {"worker/task.hpp", " park(state_, awaited)", unchecked, "one waits"},
          {"worker/task.hpp", "state_.compare_exchange_strong(seen, awaited, MemoryOrder::acq_rel)", torn, "one waits"},
      }};
}

}  // namespace interleavings
