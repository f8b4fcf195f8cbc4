// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <sched.h>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/floating_point_modes.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/spin.hpp>
#include <fanout/sync/ticks.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/worker/handoff_slot.hpp>
#include <fanout/worker/task.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// One shard of a call, as a task for its device.
class alignas(cache_line) ShardTask : public Task {
 public:
  ShardTask() noexcept {}  // NOLINT(modernize-use-equals-default): that would set all of it to zero

  backend::Worker* worker;
  std::size_t shard;

  /// Hands the shard to its device: to the thread if the device is free, otherwise to its queue. The device runs it by
  /// `runner`, which must live until the task is done. `takes` are its expected ticks, less than 1 if unknown.
  void post(const ShardRunner& runner, const WaitRules& rules, std::int64_t takes = 0) noexcept {
    ticket_ = worker->post(runner.run, runner.body, shard, rules, takes, runner.modes);
    if (ticket_ == 0) queue(runner);
  }

  /// True if the shard was deferred.
  bool is_deferred() const noexcept { return ticket_ == left; }

  /// Defers the shard: the caller means to take it back and run it inline. Posts it if the worker cannot take it.
  FANOUT_INLINE void defer(const ShardRunner& runner, const WaitRules& rules) noexcept;

  /// Takes the shard back. Returns false if its device has started it; otherwise the caller must run it.
  bool take_back() noexcept {
    if (is_handed()) return worker->handoff().take_back(ticket_);
    if (ticket_ == left) return worker->take_deferred(*this);
    return ticket_ == queued && !is_done() && worker->take_back(*this);
  }

  /// Runs a shard that was taken back, under the floating-point modes of its call.
  FANOUT_INLINE void run() noexcept;

  /// Runs a shard that its own caller took back, so that no thread waits for it.
  void run_here(const ShardRunner& runner) noexcept {
    if (is_handed()) {
      worker->handoff().run_taken_back();
    } else {
      runner.run(runner.body, shard);
      Task::set_done();
    }
    runner.modes.restore();
  }

  /// Waits until the shard has been run, as Task::wait does. If there are done flags, reads that of the shard first:
  /// the thread sets it before it completes the request, and touches only its own handoff slot afterwards.
  FANOUT_INLINE bool wait(const DoneFlags& flags, const WaitRules& rules, std::int64_t takes, std::uint32_t epoch,
                          Clock::Time until = Clock::never) noexcept;

 private:
  // Values of ticket_ that are no ticket of a request.
  static constexpr HandoffSlot::Ticket queued = 2;
  static constexpr HandoffSlot::Ticket left = 4;

  FANOUT_INLINE void remember(const ShardRunner& runner) noexcept;

  [[gnu::noinline]] FANOUT_INLINE void queue(const ShardRunner& runner) noexcept;

  bool is_handed() const noexcept { return ticket_ > left; }

  const ShardRunner* runner_;
  HandoffSlot::Ticket ticket_ = 0;
};
static_assert(sizeof(ShardTask) == cache_line);

/// The shards of one call as tasks. Notes the fork epoch in which they were made.
class ShardTasks {
 public:
  explicit ShardTasks(std::size_t size) : tasks_(size) {}

  /// Makes the task of the i-th shard.
  ShardTask& place(std::size_t i, const Shard& shard, const DeviceTable& devices) noexcept {
    const DeviceEntry& device = devices[shard.device];
    ShardTask& task = tasks_[i];
    task.shard = i;
    task.worker = device.worker;
    if (device.rules != nullptr) rules_ = device.rules;
    return task;
  }

  /// The wait rules of this call: those of the last placed device that has any.
  const WaitRules& rules() const noexcept { return *rules_; }

  /// The expected ticks of each shard, less than 1 if unknown.
  void expect(std::int64_t takes) noexcept { takes_ = takes; }
  std::int64_t takes() const noexcept { return takes_; }

  /// Called when all shards are posted. From now on other threads than the poster may take shards back.
  void all_are_posted() noexcept { posted_.store(true, MemoryOrder::release); }

  /// Takes back a shard that no device has started, for a thread that runs it: other shards may wait for it. Returns
  /// null if all have been started. May be called from any thread while some have not ended. Waits until all are
  /// posted.
  ShardTask* take_back() noexcept {
    while (!posted_.load(MemoryOrder::acquire)) ::sched_yield();  // short: the poster does nothing else
    for (ShardTask& task : tasks_) {
      if (task.take_back()) return &task;
    }
    return nullptr;
  }

  std::size_t size() const noexcept { return tasks_.size(); }
  ShardTask& operator[](std::size_t i) noexcept { return tasks_[i]; }
  ShardTask* begin() noexcept { return tasks_.begin(); }
  ShardTask* end() noexcept { return tasks_.end(); }
  std::uint32_t epoch() const noexcept { return epoch_; }

  /// Waits for all shards that were handed to devices. Each has been started or taken back. Returns false if the
  /// process was forked after the tasks were made: then they run in the parent only.
  ///
  /// If some have not ended at the deadline, calls `runner.tell_late()` at that time.
  bool wait(const ShardRunner& runner, Clock::Time deadline) noexcept {
    bool ended = true;
    for (ShardTask& task : tasks_) {
      if (deadline != Clock::never && !task.wait(runner.done_flags, *rules_, takes_, epoch_, deadline)) {
        if (epoch_ == fork_epoch()) runner.tell_late();
        deadline = Clock::never;
      }
      ended = task.wait(runner.done_flags, *rules_, takes_, epoch_) && ended;
    }
    return ended;
  }

 private:
  std::uint32_t epoch_ = fork_epoch();
  Atomic<bool> posted_{false};
  const WaitRules* rules_ = &Park::rules;
  std::int64_t takes_ = 0;
  InlineArray<ShardTask> tasks_;
};

/// Throws the Error of a call in the child of a fork, if shards of the call stayed in the parent.
[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_after_fork();

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/shard_tasks.ipp>
#endif
