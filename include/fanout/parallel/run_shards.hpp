// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/device/device_set.hpp>
#include <fanout/device/mailbox.hpp>
#include <fanout/device/wait_policy.hpp>
#include <fanout/device/wake_cost.hpp>
#include <fanout/parallel/handing_out.hpp>
#include <fanout/parallel/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Which shards a call does not hand out.
enum class Keeping { none, asleep, all };

/// Decides what one call keeps, by what earlier ones took, and notes what this one takes. Where nothing is learnt it
/// keeps none.
class CallKeeping {
 public:
  CallKeeping(CallTimes* times, const Plan& plan, const WaitRules& rules) noexcept {
    if (times == nullptr || plan.size() < 2 || !rules.keeps_small) return;
    rows_ = plan[0].rows.size();
    expected_ = times->body.expected(rows_);
    if (expected_ != BodyTime::unknown && !times->handing_out.is_worth(expected_, plan.size())) {
      what_ = Keeping::all;
      if (!times->is_kept_call_noted()) return;
    }
    times_ = times;
    begin_ = Ticks::now();
  }

  /// Some shards are handed out, if their devices' threads are awake, or else if they gain more than a wake costs.
  template <class Tasks>
  void look_who_sleeps(Tasks& tasks) noexcept {
    if (times_ == nullptr || expected_ == BodyTime::unknown) return;
    std::int64_t asleep = 0;
    for (auto& task : tasks) asleep += task.shard != 0 && task.worker->is_asleep() ? 1 : 0;
    all_awake_ = asleep == 0;
    all_asleep_ = asleep + 1 == static_cast<std::int64_t>(tasks.size());
    if (asleep == 0) return;
    if (Ticks::nanoseconds(expected_ * asleep) < wake_cost.nanoseconds()) {
      what_ = Keeping::asleep;
    }
  }

  Keeping what() const noexcept { return what_; }
  /// How long a shard is expected to take, in nanoseconds.
  std::int64_t expected() const noexcept { return Ticks::nanoseconds(expected_); }

  /// Runs the caller's own shard.
  template <class Body>
  void run_own(const Body& body, std::size_t shard) noexcept {
    if (times_ == nullptr) return body(shard);
    const std::int64_t own_begin = Ticks::now();
    body(shard);
    own_ = Ticks::now() - own_begin;
    times_->body.note(rows_, own_, expected_);
  }

  /// The same as the first of all, where all are kept.
  template <class Body>
  void run_own_first(const Body& body, std::size_t shard) noexcept {
    body(shard);
    if (times_ == nullptr) return;
    own_ = Ticks::now() - begin_;
    times_->body.note(rows_, own_, expected_);
  }

  /// All shards have ended.
  void all_ended(std::size_t shards) noexcept {
    if (times_ == nullptr) return;
    if (what_ == Keeping::all || (what_ == Keeping::asleep && all_asleep_)) {
      times_->handing_out.note_kept(Ticks::now() - begin_ - own_ * static_cast<std::int64_t>(shards));
    } else if (what_ == Keeping::none && all_awake_) {
      times_->handing_out.note_handed_out(Ticks::now() - begin_ - own_);
    }
  }

 private:
  CallTimes* times_ = nullptr;
  Keeping what_ = Keeping::none;
  bool all_awake_ = false;
  bool all_asleep_ = false;
  std::size_t rows_ = 0;
  std::int64_t expected_ = BodyTime::unknown;
  std::int64_t begin_ = 0;
  std::int64_t own_ = 0;
};

/// Runs the only shard of a call on this thread, if it is for the main device and that is free.
template <Device... Ds, class Body>
bool run_only(const Shard& shard, const DeviceSet<Ds...>& devices, const Body& body) {
  if (shard.device != 0) return false;
  bool taken = false;
  devices.visit(0, [&](const auto& device) {
    Mailbox& right = device.worker().right();
    taken = right.try_take();
    if (!taken) return;
    const std::uint32_t epoch = fork_epoch();
    body(0);
    if (epoch == fork_epoch()) right.give();  // what was held before a fork is not held in the child
  });
  return taken;
}

/// Runs all shards of a call on this thread, the main device's first one first. The others are left with their devices
/// meanwhile.
template <class Body, class Look>
void run_kept(const Plan& plan, ShardTasks& tasks, const Body& body, CallKeeping& keeping, const Look& look) {
  std::size_t own = 0;
  while (own < plan.size() && plan[own].device != 0) ++own;
  for (ShardTask& task : tasks) {
    if (task.shard != own) task.leave(body, tasks.rules());
  }
  tasks.all_are_posted();
  if (own < plan.size()) keeping.run_own_first(body, own);
  look();
  for (std::size_t i = tasks.size(); i > 0; --i) {
    if (!tasks[i - 1].take_back()) continue;
    tasks[i - 1].run_here(body);
    look();
  }
}

/// Hands out what is not kept, runs the main device's first shard on this thread if the device is free, and then what no
/// device has started. The own shard comes last: what that takes goes by while the others' requests travel.
template <class Body, class Look>
void run_handed_out(const Plan& plan, ShardTasks& tasks, const Body& body, CallKeeping& keeping, const Look& look) {
  keeping.look_who_sleeps(tasks);
  const bool keeps_asleep = keeping.what() == Keeping::asleep;
  ShardTask* first = nullptr;
  for (ShardTask& task : tasks) {
    if (first == nullptr && plan[task.shard].device == 0) {
      first = &task;
    } else if (!keeps_asleep || !task.worker->is_asleep()) {
      task.post(body, tasks.rules());
    } else {
      task.worker->note_left(2 * keeping.expected());
      task.leave(body, tasks.rules());
    }
  }
  const bool own = first != nullptr && first->worker->right().try_take();
  if (first != nullptr && !own) first->post(body, tasks.rules());
  tasks.all_are_posted();
  if (own) {
    keeping.run_own(body, first->shard);
    // What was held before a fork is not held in the child.
    if (tasks.epoch() == fork_epoch()) first->worker->right().give();
  }
  look();
  for (std::size_t i = tasks.size(); i > 0; --i) {
    if (!tasks[i - 1].take_back()) continue;
    tasks[i - 1].run_here(body);
    look();
  }
}

}  // namespace detail

/// Runs `body(i)` for every shard of the plan, at the same time, each for its device; `body` does not throw. Returns
/// when all have ended.
///
/// The main device's first shard runs on the calling thread if the device is free; all others are handed to their
/// devices. Then the caller takes back those of its shards that no device has started yet and runs them itself, one by
/// one, and waits only for those that have been started. It therefore never waits for work that waits for it: nested
/// calls, on the same or on overlapping sets, end. Which thread runs a shard is unspecified.
///
/// Where `times` are given, they are told how long shards take, and those that are expected to take less time than
/// handing them out are not handed out; see Adaptive. What is kept from a device that is not asked for anything else
/// runs whether or not the device is free.
///
/// Shards that wait for each other need not wait for the caller: `body.tasks_are(tasks)`, where there is such, is told
/// before any of them runs where those can be taken back that have not been started. And `body.has_ended(i)`, where
/// there is such, tells whether a shard has ended, before the device's thread has said so.
///
/// When the deadline has passed and some have not ended, `tell_late()` is called: when it passes if the caller waits,
/// and else after each shard that the caller runs from then on. It does not throw.
///
/// Throws Error in a process that was forked while `body` ran: the shards on other threads stayed in the parent.
template <Device... Ds, class Body, class TellLate>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body, Clock::Time deadline,
                const TellLate& tell_late, CallTimes* times = nullptr) {
  const auto look = [&] {
    if (deadline != Clock::never && Clock::now() >= deadline) tell_late();
  };
  if (plan.size() == 1 && detail::run_only(plan[0], devices, body)) return look();
  ShardTasks tasks(plan.size());
  if constexpr (requires { body.tasks_are(tasks); }) body.tasks_are(tasks);
  for (std::size_t i = 0; i < plan.size(); ++i) tasks.place(i, plan[i], devices);
  detail::CallKeeping keeping(times, plan, tasks.rules());
  if (keeping.what() == detail::Keeping::all) {
    detail::run_kept(plan, tasks, body, keeping, look);
  } else {
    detail::run_handed_out(plan, tasks, body, keeping, look);
  }
  if (!tasks.wait(body, deadline, tell_late)) refuse_after_fork();
  keeping.all_ended(plan.size());
}

/// The same without a deadline.
template <Device... Ds, class Body>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body) {
  run_shards(plan, devices, body, Clock::never, []() noexcept {});
}

}  // namespace fanout::inline v0
