// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/task_queue.hpp>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::Task;
using fanout::detail::TaskQueue;

struct Counting : Task {
  Counting() {
    prepare([](Task& self) noexcept {
      auto& counting = static_cast<Counting&>(self);
      counting.runs.set(counting.runs.get() + 1);
    });
  }
  Plain<int> runs{0};
};

void push(TaskQueue& queue, Counting& task) {
  task.runs.set(0);  // the runner must see this
  queue.push(task);
}

/// Runs the tasks in the queue. Returns how many.
int drain(TaskQueue& queue) {
  int taken = 0;
  while (Task* task = queue.pop()) {
    task->run();
    ++taken;
  }
  return taken;
}

void two_push() {
  TaskQueue queue;
  Counting first;
  Counting second;
  int taken = 0;
  run([&] { push(queue, first); }, [&] { push(queue, second); }, [&] { taken = drain(queue); });
  taken += drain(queue);
  check(taken == 2 && first.runs.get() == 1 && second.runs.get() == 1, "each task has been run once");
  check(queue.empty(), "the queue is empty");
}

void one_takes_back() {
  TaskQueue queue;
  Counting first;
  Counting second;
  int taken = 0;
  bool back = false;
  run(
      [&] {
        push(queue, first);
        push(queue, second);
        back = queue.remove(second);
        if (back) second.run();
      },
      [&] { taken = drain(queue); });
  taken += drain(queue) + (back ? 1 : 0);
  check(taken == 2 && first.runs.get() == 1 && second.runs.get() == 1, "each task has been run once");
}

void one_takes_the_first_back() {
  TaskQueue queue;
  Counting task;
  int taken = 0;
  bool back = false;
  run(
      [&] {
        push(queue, task);
        back = queue.remove(task);
        if (back) task.run();
      },
      [&] { taken = drain(queue); });
  taken += drain(queue) + (back ? 1 : 0);
  check(taken == 1 && task.runs.get() == 1, "the task has been run once");
}

/// The tasks of one thread come out in the order in which they were pushed.
void in_order() {
  TaskQueue queue;
  Counting tasks[3];
  int at = 0;
  const auto take = [&] {
    while (Task* task = queue.pop()) check(task == &tasks[at++], "the tasks come in order");
  };
  run(
      [&] {
        for (Counting& task : tasks) push(queue, task);
      },
      take);
  take();
  check(at == 3, "all tasks came");
}

void two_take() {
  TaskQueue queue;
  Counting first;
  Counting second;
  queue.push(first);
  queue.push(second);
  int taken[2] = {};
  run([&] { taken[0] = drain(queue); }, [&] { taken[1] = drain(queue); });
  check(taken[0] + taken[1] == 2 && first.runs.get() == 1 && second.runs.get() == 1, "each task has been run once");
}

}  // namespace

Protocol task_queue() {
  using enum Fault::How;
  const char* const header = "worker/task_queue.hpp";
  return {"task_queue",
          {{"two push", two_push},
           {"one takes back", one_takes_back},
           {"one takes the first back", one_takes_the_first_back},
           {"in order", in_order},
           {"two take", two_take}},
          {
              {header, "first_.compare_exchange_strong(none, &task)", torn, "two push"},
              {header, "first_.compare_exchange_strong(none, &task)", relaxed, "two push"},
              {header, "behind_.fetch_add(1, MemoryOrder::seq_cst)", skipped, "two push"},
              {header, "    if (Task* task = first_.exchange(nullptr, MemoryOrder::acq_rel))", torn,
               "one takes the first back"},
              {header, "first_.compare_exchange_strong(expected, nullptr, MemoryOrder::acq_rel)", torn,
               "one takes the first back"},
              {header, "behind_.fetch_sub(1, MemoryOrder::acq_rel)", skipped, "two push"},
          }};
}

}  // namespace interleavings
