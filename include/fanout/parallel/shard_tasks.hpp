// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <sched.h>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/task.hpp>
#include <fanout/device/worker.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout::inline v0 {

/// One shard of a call, as a task for its device. One that was not posted is run by whoever made it.
struct ShardTask : Task {
  const void* body = nullptr;
  Worker* worker = nullptr;
  std::size_t shard = 0;
  bool posted = false;

  /// Queues it at its device.
  void post() noexcept {
    posted = true;
    worker->post(*this);
  }

  /// True if no device has started it: then the caller runs it.
  bool take_back() noexcept { return posted && !is_done() && worker->take_back(*this); }
};

/// The shards of one call as tasks, which know in which epoch they were made.
class ShardTasks {
 public:
  template <std::integral Size>
  explicit ShardTasks(Size size) : tasks_(static_cast<std::size_t>(size)) {}

  /// Makes the task of the i-th shard: on its device, `body(i)` will be called, which lives until the task is done and
  /// does not throw.
  template <Device... Ds, class Body>
  ShardTask& place(std::size_t i, const Shard& shard, const DeviceSet<Ds...>& devices, const Body& body) {
    ShardTask& task = tasks_[i];
    task.body = &body;
    task.prepare([](Task& self) noexcept {
      const auto& own = static_cast<ShardTask&>(self);
      (*static_cast<const Body*>(own.body))(own.shard);
    });
    task.shard = i;
    devices.visit(shard.device, [&task](const auto& device) { task.worker = &device.worker(); });
    return task;
  }

  /// Says that all that are to be posted are, so that others than the poster may take some back.
  void all_are_posted() noexcept { posted_.store(true, MemoryOrder::release); }

  /// Takes back one that no device has started, for who asks to run it: for shards that wait for it. Null if all have
  /// been started. From any thread, while some have not ended.
  ShardTask* take_back() noexcept {
    while (!posted_.load(MemoryOrder::acquire)) ::sched_yield();  // the poster does nothing else
    for (ShardTask& task : tasks_) {
      if (task.take_back()) return &task;
    }
    return nullptr;
  }

  std::size_t size() const noexcept { return tasks_.size(); }
  ShardTask& operator[](std::size_t i) noexcept { return tasks_[i]; }
  std::uint32_t epoch() const noexcept { return epoch_; }

  /// Waits for all that were posted, each of which has been started or taken back. False if that cannot happen any
  /// more: the process was forked since the tasks were made, and they run in the parent only.
  ///
  /// At the deadline, if some have not ended by then, calls `tell_late()`, which does not throw.
  template <class TellLate>
  bool wait(Clock::Time deadline, const TellLate& tell_late) noexcept {
    bool ended = true;
    for (ShardTask& task : tasks_) {
      if (!task.posted) continue;
      if (deadline != Clock::never && !task.wait_until(deadline, task.worker->spins(), epoch_)) {
        if (epoch_ == fork_epoch()) tell_late();
        deadline = Clock::never;
      }
      ended = task.wait(task.worker->spins(), epoch_) && ended;
    }
    return ended;
  }

 private:
  std::uint32_t epoch_ = fork_epoch();
  Atomic<bool> posted_{false};
  InlineArray<ShardTask> tasks_;
};

/// Throws what a call throws in the child of a fork if others of its shards stayed in the parent.
[[noreturn]] inline void refuse_after_fork() {
  throw Error(explain({.what = "the process was forked while a forward was running",
                       .where = "the child",
                       .expected = "calls to be made before or after fork, or to exec in the child",
                       .found = "shards that run in the parent only"}));
}

}  // namespace fanout::inline v0
