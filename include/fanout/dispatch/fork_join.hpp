// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fanout/device/device_set.hpp>
#include <fanout/dispatch/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/waiting/call_keeping.hpp>
#include <fanout/waiting/call_times.hpp>
#include <fanout/worker/mailbox.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Runs `body(i)` for every shard of a plan, at the same time, each for its device: first dispatch(), then run_own(),
/// then join(), on one thread. Borrows all that it is made of. `body` does not throw.
///
/// The main device's first shard runs on the calling thread if the device is free; all others are handed to their
/// devices. Then the caller takes back those of its shards that no device has started yet and runs them itself, one by
/// one, and waits only for those that have been started. It therefore never waits for work that waits for it: nested
/// calls, on the same or on overlapping sets, end. Which thread runs a shard is unspecified.
///
/// Where `times` are given, they are told how long shards take, and those that are expected to take less time than
/// handing them out are not handed out; see Adaptive. A call that hands nothing out takes no device.
///
/// What else `body` may have:
/// - `body.ended(i)`: a flag for each shard that the device's thread sets before it says that the device is free.
/// - `body.tasks_are(tasks)`: told, before any shard runs, where those can be taken back that have not been started. So
///   shards that wait for each other need not wait for the caller.
/// - `body.tell_late()`: called if some have not ended at the deadline: when it passes if the caller waits, and else
///   after each shard that the caller runs from then on. Does not throw.
template <class Body, Device... Ds>
class ForkJoin {
 public:
  ForkJoin(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body, Clock::Time deadline = Clock::never,
           CallTimes* times = nullptr)
      : plan_(plan), devices_(devices), body_(body), deadline_(deadline), times_(times) {}

  /// Hands out what is to run on other threads. Throws std::bad_alloc before it has handed out any. The main device's
  /// first shard comes last: what it takes goes by while the others' requests travel.
  void dispatch() {
    if (plan_.size() == 1 && plan_[0].device == 0 && lock_main_device()) {
      own_ = 0;
      return;
    }
    ShardTasks& tasks = tasks_.emplace(plan_.size());
    if constexpr (requires { body_.tasks_are(tasks); }) body_.tasks_are(tasks);
    for (std::size_t i = 0; i < plan_.size(); ++i) tasks.place(i, plan_[i], devices_);
    CallKeeping& keeping = keeping_.emplace(times_, plan_, tasks.rules());
    tasks.expect(keeping.expected());
    if (keeping.what() != Keeping::all) keeping.look_who_sleeps(tasks);
    if (keeping.what() == Keeping::all) {
      leave_others(tasks);
    } else {
      post_others(tasks, keeping.what() == Keeping::asleep);
    }
    tasks.all_are_posted();
  }

  /// Runs the main device's first shard on this thread, if that is how it was decided.
  void run_own() noexcept {
    if (own_ == none) return;
    const std::uint32_t epoch = fork_epoch();
    if (keeping_) keeping_->own_begins();
    body_(own_);
    if (keeping_) keeping_->own_ends();
    // What was held before a fork is not held in the child.
    if (locked_ != nullptr && epoch == fork_epoch()) locked_->give();
    tell_if_late();
  }

  /// Runs what no device has started, and waits for the rest. Throws Error in a process that was forked while `body`
  /// ran: the shards on other threads stayed in the parent.
  void join() {
    if (!tasks_) return;
    for (std::size_t i = tasks_->size(); i > 0; --i) {
      ShardTask& task = (*tasks_)[i - 1];
      if (task.take_back()) {
        task.run_here(body_);
        tell_if_late();
      } else if (task.is_left() && times_ != nullptr) {
        times_->note_found();
      }
    }
    if (!tasks_->wait(body_, deadline_, [this]() noexcept { tell_late(); })) refuse_after_fork();
    if (keeping_) keeping_->all_ended(plan_.size());
  }

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  bool lock_main_device() noexcept {
    Mailbox* right = nullptr;
    devices_.visit(0, [&right](const auto& device) { right = &device.worker().right(); });
    if (!right->try_take()) return false;
    locked_ = right;
    return true;
  }

  /// Leaves all shards but the main device's first one with their devices.
  void leave_others(ShardTasks& tasks) noexcept {
    for (ShardTask& task : tasks) {
      if (own_ == none && plan_[task.shard].device == 0) {
        own_ = task.shard;
      } else {
        task.leave(body_, tasks.rules());
      }
    }
  }

  /// Hands out what is not kept.
  void post_others(ShardTasks& tasks, bool keeps_asleep) noexcept {
    ShardTask* first = nullptr;
    for (ShardTask& task : tasks) {
      if (first == nullptr && plan_[task.shard].device == 0) {
        first = &task;
      } else if (!keeps_asleep || !task.worker->is_asleep()) {
        task.post(body_, tasks.rules(), tasks.takes());
      } else {
        task.leave(body_, tasks.rules());
      }
    }
    if (first == nullptr) return;
    if (first->worker->right().try_take()) {
      locked_ = &first->worker->right();
      own_ = first->shard;
    } else {
      first->post(body_, tasks.rules(), tasks.takes());
    }
  }

  void tell_if_late() const noexcept {
    if (deadline_ != Clock::never && Clock::now() >= deadline_) tell_late();
  }
  void tell_late() const noexcept {
    if constexpr (requires { body_.tell_late(); }) body_.tell_late();
  }

  const Plan& plan_;
  const DeviceSet<Ds...>& devices_;
  const Body& body_;
  const Clock::Time deadline_;
  CallTimes* const times_;
  std::size_t own_ = none;              // the shard for this thread
  Mailbox* locked_ = nullptr;           // of the main device, for that shard
  std::optional<CallKeeping> keeping_;  // this and what follows: none if this thread runs the only shard
  std::optional<ShardTasks> tasks_;
};

/// Runs `body(i)` for every shard of the plan, and returns when all have ended: see ForkJoin.
template <Device... Ds, class Body>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body, CallTimes* times = nullptr) {
  ForkJoin<Body, Ds...> shards(plan, devices, body, Clock::never, times);
  shards.dispatch();
  shards.run_own();
  shards.join();
}

}}}  // namespace fanout::v0::detail
