// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/shard_runner.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/waiting/call_statistics.hpp>
#include <fanout/waiting/dispatch_decision.hpp>
#include <fanout/worker/handoff_slot.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Runs every shard of a plan by a ShardRunner, at the same time, each for its device: first dispatch(), then
/// run_own(), then join(), on one thread. Borrows all that it is made of, also the runner's body.
///
/// The main device's first shard runs on the calling thread if the device is free. All others are handed to their
/// devices. Then the caller takes back its shards that no device has started, runs them one at a time, and waits only
/// for those that have been started. So it never waits for work that waits for it: nested calls end, also on
/// overlapping sets of devices. Which thread runs a shard is unspecified.
///
/// If `times` is given, the call adds its shard times, and runs shards inline if dispatching them would take longer;
/// see Adaptive. A call that runs all shards inline locks no device.
///
/// Late shards are told at the deadline if the caller waits, otherwise after each shard that it runs from then on.
class ForkJoin {
 public:
  template <class Body>
  ForkJoin(const Plan& plan, const DeviceTable& devices, const Body& body, Clock::Time deadline = Clock::never,
           CallStatistics* times = nullptr)
      : plan_(&plan), devices_(devices), runner_(body), deadline_(deadline), times_(times) {}

  const ShardRunner& runner() const noexcept { return runner_; }

  /// Call this before dispatch() to run the shards of another plan by another body, none of them inline.
  template <class Body>
  void run_instead(const Plan& plan, const Body& body) noexcept {
    plan_ = &plan;
    runner_ = ShardRunner(body);
    times_ = nullptr;
  }

  /// Dispatches the shards that run on other threads. Throws std::bad_alloc before it dispatches any. The main device
  /// is locked last: its cost overlaps with the requests in flight.
  void dispatch() {
    if (plan_->size() == 1 && (*plan_)[0].device == 0 && lock_main_device()) {
      own_ = 0;
    } else {
      dispatch_all();
    }
  }

  /// Runs the main device's first shard, if dispatch() gave it to this thread.
  void run_own() noexcept {
    if (own_ == none) return;
    const std::uint32_t epoch = fork_epoch();
    if (decision_) decision_->own_begins();
    runner_.run(runner_.body, own_);
    runner_.modes.restore();
    if (decision_) decision_->own_ends();
    // After a fork the child does not hold the device.
    if (locked_ != nullptr && epoch == fork_epoch()) locked_->unlock();
    tell_if_late();
  }

  /// Runs the shards that no device has started, and waits for the rest. Throws Error in a process that was forked
  /// while shards ran, since those on other threads stayed in the parent.
  void join() {
    if (tasks_) join_others(*tasks_);
  }

  /// Takes back a shard that no device has started, for a shard that waits for it: see ShardTasks::take_back(). Called
  /// by running shards only.
  FANOUT_INLINE ShardTask* take_back() noexcept;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  FANOUT_INLINE void dispatch_all();
  FANOUT_INLINE void join_others(ShardTasks& tasks);
  /// Defers all shards but the main device's first one.
  FANOUT_INLINE void defer_others(ShardTasks& tasks) noexcept;
  /// Posts all shards but the main device's first one. Defers those of sleeping threads if `defers_asleep`.
  FANOUT_INLINE void post_others(ShardTasks& tasks, bool defers_asleep) noexcept;

  /// Returns true if this thread may run a shard of the main device: it has locked it, or it is the device's own, which
  /// holds it for the task that makes this call.
  bool lock_main_device() noexcept {
    backend::Worker& worker = *devices_[0].worker;
    if (worker.handoff().try_lock()) locked_ = &worker.handoff();
    return locked_ != nullptr || this_worker == &worker;
  }

  void tell_if_late() const noexcept {
    if (deadline_ != Clock::never && Clock::now() >= deadline_) runner_.tell_late();
  }

  const Plan* plan_;
  const DeviceTable& devices_;
  ShardRunner runner_;
  const Clock::Time deadline_;
  CallStatistics* times_;
  std::size_t own_ = none;         // the shard for this thread
  HandoffSlot* locked_ = nullptr;  // of the main device, for that shard
  // None if this thread runs the only shard:
  std::optional<DispatchDecision> decision_;
  std::optional<ShardTasks> tasks_;
};

/// Runs `body(i)` for every shard of the plan, and returns when all have ended: see ForkJoin.
template <class Body>
void run_shards(const Plan& plan, const DeviceTable& devices, const Body& body, CallStatistics* times = nullptr) {
  ForkJoin shards(plan, devices, body, Clock::never, times);
  shards.dispatch();
  shards.run_own();
  shards.join();
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/dispatch/fork_join.ipp>
#endif
