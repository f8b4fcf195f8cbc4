// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/worker/worker.hpp>

#include <cstddef>
#include <vector>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::backend::Worker;
using fanout::detail::HandoffSlot;
using fanout::detail::Task;

struct Body {
  Plain<int> asked{0};
  mutable Plain<int> runs{0};

  static fanout::detail::Atomic<bool>* run(const void* body, std::size_t) noexcept {
    const auto& self = *static_cast<const Body*>(body);
    self.runs.set(self.runs.get() + self.asked.get());
    return nullptr;
  }
};

struct Counting : Task {
  Counting() {
    prepare([](Task& self) noexcept {
      auto& counting = static_cast<Counting&>(self);
      counting.runs.set(counting.runs.get() + 1);
    });
  }
  Plain<int> runs{0};
};

const fanout::DeviceId device{"host", 0};

/// Posts a request and waits for its answer.
void call(Worker& worker, const fanout::WaitRules& rules) {
  Body body;
  body.asked.set(1);
  const HandoffSlot::Ticket ticket = worker.post(&Body::run, &body, 0, rules);
  check(ticket != 0, "the device is free");
  check(worker.handoff().await(ticket, 0, 0), "the request is answered");
  check(body.runs.get() == 1, "it has been run");
}

void call_one_that_sleeps() {
  Worker worker(device, {0}, false);
  run([&] {
    call(worker, fanout::Park::rules);
    call(worker, fanout::Park::rules);
  });
}

void call_one_that_looks() {
  Worker worker(device, {0}, true);
  run([&] {
    call(worker, fanout::Spin::rules);
    call(worker, fanout::Spin::rules);
  });
}

void queue_tasks() {
  Worker worker(device, {0}, false);
  Counting first;
  Counting second;
  run([&] {
    first.runs.set(0);  // the worker's thread must see this
    worker.post(first);
    first.wait(0, 0);
    worker.post(second);
    second.wait(0, 0);
  });
  check(first.runs.get() == 1 && second.runs.get() == 1, "each task has been run once");
}

/// The second task goes to the list behind the first one.
void queue_two_at_once() {
  Worker worker(device, {0}, false);
  Counting first;
  Counting second;
  run([&] {
    first.runs.set(0);  // the worker's thread must see this, and the next one
    second.runs.set(0);
    worker.post(first);
    worker.post(second);
    second.wait(0, 0);
    first.wait(0, 0);
  });
  check(first.runs.get() == 1 && second.runs.get() == 1, "each task has been run once");
}

void call_while_another_queues() {
  Worker worker(device, {0}, false);
  Counting task;
  Body body;
  run(
      [&] {
        worker.post(task);
        task.wait(0, 0);
      },
      [&] {
        body.asked.set(1);
        const HandoffSlot::Ticket ticket = worker.post(&Body::run, &body, 0, fanout::Park::rules);
        if (ticket == 0) {
          const fanout::detail::DeviceLock held(worker.handoff());
          Body::run(&body, 0);
        } else {
          check(worker.handoff().await(ticket, 0, 0), "the request is answered");
        }
        check(body.runs.get() == 1, "the request has been run once");
      });
  check(task.runs.get() == 1, "the task has been run once");
}

/// The thread goes to sleep for good while a task is left with it.
void leave_with_one_that_may_sleep() {
  Worker worker(device, {0}, false);
  Counting task;
  run([&] {
    call(worker, fanout::Park::rules);
    Machine::now()->allow_timeouts(3);  // for the looks, of which the first may come while the task is being left
    task.runs.set(0);                   // the worker's thread must see this
    if (!worker.defer(task)) return task.run();
    task.wait(0, 0);
  });
  check(task.runs.get() == 1, "the task has been run once");
}

/// The thread wakes after a time and begins the task, while the caller takes it back.
void leave_with_one_that_looks_around() {
  Worker worker(device, {0}, false);
  Counting task;
  run([&] {
    call(worker, fanout::Adaptive::rules);
    task.runs.set(0);  // the worker's thread must see this
    if (!worker.defer(task) || worker.take_deferred(task)) return task.run();
    task.wait(0, 0);
  });
  check(task.runs.get() == 1, "the task has been run once");
}

}  // namespace

Protocol worker() {
  using enum Fault::How;
  const char* const header = "worker/worker.hpp";
  const char* const handoff = "worker/handoff_slot.hpp";
  const char* const queue = "worker/task_queue.hpp";
  return {
      "worker",
      {{"call one that sleeps", call_one_that_sleeps, {.surprises = 1}},
       {"call one that looks", call_one_that_looks, {.surprises = 1}},
       {"queue tasks", queue_tasks, {.surprises = 1}},
       {"queue two at once", queue_two_at_once, {.surprises = 1}},
       {"call while another queues", call_while_another_queues, {.preemptions = 1, .surprises = 1}},
       {"leave with one that may sleep", leave_with_one_that_may_sleep, {.surprises = 1}},
       {"leave with one that looks around", leave_with_one_that_looks_around, {.surprises = 0, .timeouts = 2}}},
      {
          {handoff, "word_.store(seen + posted, MemoryOrder::seq_cst)", acq_rel, "call one that sleeps"},
          {handoff, "phase(word_.load(MemoryOrder::seq_cst)) >= posted", acq_rel, "call one that sleeps"},
          {queue, "first_.compare_exchange_strong(none, &task)", acq_rel, "queue tasks"},
          {queue, "behind_.fetch_add(1, MemoryOrder::seq_cst)", acq_rel, "queue two at once"},
          {queue, "return first_.load(MemoryOrder::seq_cst) == nullptr &&", acq_rel, "queue tasks"},
          {header, "asleep_.fetch_add(0, detail::MemoryOrder::seq_cst)", skipped, "call one that sleeps"},
          {header, "asleep_.store(how, detail::MemoryOrder::seq_cst)", acq_rel, "leave with one that may sleep"},
          {header, "asleep_.store(how, detail::MemoryOrder::seq_cst)", late, "call one that sleeps"},
          {header, " detail::unpark_all(asleep_)", skipped, "call one that sleeps"},
          {header, " detail::park(asleep_, how)", unchecked, "call one that sleeps"},
          {header, " detail::park_until(asleep_, how, until)", unchecked, "call one that sleeps"},
          {header, "deferred_.compare_exchange_strong(none, &task, detail::MemoryOrder::seq_cst)", acq_rel,
           "leave with one that may sleep"},
          {header, "deferred_.load(detail::MemoryOrder::seq_cst) == nullptr", acq_rel, "leave with one that may sleep"},
          {header, "return asleep_.load(detail::MemoryOrder::seq_cst) < asleep_for_good", acq_rel,
           "leave with one that may sleep"},
          {header, "detail::Task* task = deferred_.exchange(nullptr, detail::MemoryOrder::acq_rel)", relaxed,
           "leave with one that may sleep"},
          {header, "detail::Task* task = deferred_.exchange(nullptr, detail::MemoryOrder::acq_rel)", torn,
           "leave with one that looks around"},
          {header, "deferred_.compare_exchange_strong(expected, nullptr)", torn, "leave with one that looks around"},
      }};
}

}  // namespace interleavings
