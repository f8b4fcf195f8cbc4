// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fanout/device/device_set.hpp>
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
/// Late shards are told at the deadline if the caller waits, otherwise after each shard that the caller runs from then
/// on.
template <Device... Ds>
class ForkJoin {
  using Devices = DeviceSet<Ds...>;

 public:
  template <class Body>
  ForkJoin(const Plan& plan, const Devices& devices, const Body& body, Clock::Time deadline = Clock::never,
           CallStatistics* times = nullptr)
      : plan_(&plan), devices_(devices), runner_(body), deadline_(deadline), times_(times) {}

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
  ShardTask* take_back() noexcept { return tasks_ ? tasks_->take_back() : nullptr; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  void dispatch_all() {
    auto& tasks = tasks_.emplace(plan_->size());
    for (std::size_t i = 0; i < plan_->size(); ++i) tasks.place(i, (*plan_)[i], devices_);
    auto& decision = decision_.emplace(times_, *plan_, tasks.rules());
    tasks.expect(decision.expected());
    if (decision.what() != Inline::all) decision.check_sleeping_workers(tasks);
    if (decision.what() == Inline::all) {
      defer_others(tasks);
    } else {
      post_others(tasks, decision.what() == Inline::asleep);
    }
    tasks.all_are_posted();
  }

  void join_others(ShardTasks& tasks) {
    for (std::size_t i = tasks.size(); i > 0; --i) {
      ShardTask& task = tasks[i - 1];
      if (task.take_back()) {
        task.run_here(runner_);
        tell_if_late();
      } else if (task.is_deferred() && times_ != nullptr) {
        times_->note_found();
      }
    }
    if (!tasks.wait(runner_, deadline_)) refuse_after_fork();
    if (decision_) decision_->all_ended(plan_->size());
  }

  bool lock_main_device() noexcept {
    HandoffSlot* device_lock = nullptr;
    devices_.visit(0, [&device_lock](const auto& device) { device_lock = &device.worker().handoff(); });
    if (!device_lock->try_lock()) return false;
    locked_ = device_lock;
    return true;
  }

  /// Defers all shards but the main device's first one.
  void defer_others(ShardTasks& tasks) noexcept {
    for (ShardTask& task : tasks) {
      if (own_ == none && (*plan_)[task.shard].device == 0) {
        own_ = task.shard;
      } else {
        task.defer(runner_, tasks.rules());
      }
    }
  }

  /// Posts all shards but the main device's first one. Defers those of sleeping threads if `defers_asleep`.
  void post_others(ShardTasks& tasks, bool defers_asleep) noexcept {
    ShardTask* first = nullptr;
    for (ShardTask& task : tasks) {
      if (first == nullptr && (*plan_)[task.shard].device == 0) {
        first = &task;
      } else if (!defers_asleep || !task.worker->is_asleep()) {
        task.post(runner_, tasks.rules(), tasks.takes());
      } else {
        task.defer(runner_, tasks.rules());
      }
    }
    if (first == nullptr) return;
    if (first->worker->handoff().try_lock()) {
      locked_ = &first->worker->handoff();
      own_ = first->shard;
    } else {
      first->post(runner_, tasks.rules(), tasks.takes());
    }
  }

  void tell_if_late() const noexcept {
    if (deadline_ != Clock::never && Clock::now() >= deadline_) runner_.tell_late();
  }

  const Plan* plan_;
  const Devices& devices_;
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
template <Device... Ds, class Body>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body, CallStatistics* times = nullptr) {
  ForkJoin<Ds...> shards(plan, devices, body, Clock::never, times);
  shards.dispatch();
  shards.run_own();
  shards.join();
}

}}}  // namespace fanout::v0::detail
