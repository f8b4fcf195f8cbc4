// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/device/device_set.hpp>
#include <fanout/device/mailbox.hpp>
#include <fanout/parallel/call_keeping.hpp>
#include <fanout/parallel/call_times.hpp>
#include <fanout/parallel/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout::inline v0 {

namespace detail {

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

/// Leaves all shards but the main device's first one with their devices, and runs that one.
template <class Body>
void run_own_and_keep(const Plan& plan, ShardTasks& tasks, const Body& body, CallKeeping& keeping) {
  std::size_t own = 0;
  while (own < plan.size() && plan[own].device != 0) ++own;
  for (ShardTask& task : tasks) {
    if (task.shard != own) task.leave(body, tasks.rules());
  }
  tasks.all_are_posted();
  if (own < plan.size()) keeping.run_own_first(body, own);
}

/// Hands out what is not kept, and runs the main device's first shard if the device is free. That one comes last: what
/// it takes goes by while the others' requests travel.
template <class Body>
void run_own_and_hand_out(const Plan& plan, ShardTasks& tasks, const Body& body, CallKeeping& keeping) {
  const bool keeps_asleep = keeping.what() == Keeping::asleep;
  ShardTask* first = nullptr;
  for (ShardTask& task : tasks) {
    if (first == nullptr && plan[task.shard].device == 0) {
      first = &task;
    } else if (!keeps_asleep || !task.worker->is_asleep()) {
      task.post(body, tasks.rules(), tasks.takes());
    } else {
      task.leave(body, tasks.rules());
    }
  }
  const bool own = first != nullptr && first->worker->right().try_take();
  if (first != nullptr && !own) first->post(body, tasks.rules(), tasks.takes());
  tasks.all_are_posted();
  if (own) {
    keeping.run_own(body, first->shard);
    // What was held before a fork is not held in the child.
    if (tasks.epoch() == fork_epoch()) first->worker->right().give();
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
/// handing them out are not handed out; see Adaptive. A call that hands nothing out takes no device.
///
/// Shards that wait for each other need not wait for the caller: `body.tasks_are(tasks)`, where there is such, is told
/// before any of them runs where those can be taken back that have not been started. And `body.ended(i)`, where there
/// is such, is a flag for each shard that the device's thread sets before it says that the device is free.
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
  tasks.expect(keeping.expected());
  if (keeping.what() != detail::Keeping::all) keeping.look_who_sleeps(tasks);
  if (keeping.what() == detail::Keeping::all) {
    detail::run_own_and_keep(plan, tasks, body, keeping);
  } else {
    detail::run_own_and_hand_out(plan, tasks, body, keeping);
  }
  look();
  for (std::size_t i = tasks.size(); i > 0; --i) {
    ShardTask& task = tasks[i - 1];
    if (task.take_back()) {
      task.run_here(body);
      look();
    } else if (task.is_left() && times != nullptr) {
      times->note_found();
    }
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
