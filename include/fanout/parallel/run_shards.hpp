// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/device/device_set.hpp>
#include <fanout/parallel/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>

namespace fanout::inline v0 {

/// Runs `body(i)` for every shard of the plan, at the same time, each for its device; `body` does not throw. Returns
/// when all have ended.
///
/// The main device's first shard runs on the calling thread if the device is free; all others are queued at their
/// devices. Then the caller takes back those of its shards that no device has started yet and runs them itself, one by
/// one, and waits only for those that have been started. It therefore never waits for work that waits for it: nested
/// calls, on the same or on overlapping sets, end. Which thread runs a shard is unspecified.
///
/// Shards that wait for each other need not wait for the caller: `body.tasks_are(tasks)`, where there is such, is told
/// before any of them runs where those can be taken back that have not been started.
///
/// When the deadline has passed and some have not ended, `tell_late()` is called: when it passes if the caller waits,
/// and else after each shard that the caller runs from then on. It does not throw.
///
/// Throws Error in a process that was forked while `body` ran: the shards on other threads stayed in the parent.
template <Device... Ds, class Body, class TellLate>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body, Clock::Time deadline,
                const TellLate& tell_late) {
  ShardTasks tasks(plan.size());
  if constexpr (requires { body.tasks_are(tasks); }) body.tasks_are(tasks);
  ShardTask* mine = nullptr;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    ShardTask& task = tasks.place(i, plan[i], devices, body);
    if (mine == nullptr && plan[i].device == 0 && task.worker->right().try_take()) {
      mine = &task;
    } else {
      task.post();
    }
  }
  tasks.all_are_posted();
  if (mine != nullptr) {
    body(mine->shard);
    // What was held before a fork is not held in the child.
    if (tasks.epoch() == fork_epoch()) mine->worker->right().give();
  }
  const auto look = [&] {
    if (deadline != Clock::never && Clock::now() >= deadline) tell_late();
  };
  look();
  for (std::size_t i = tasks.size(); i > 0; --i) {
    if (!tasks[i - 1].take_back()) continue;
    tasks[i - 1].run();
    look();
  }
  if (!tasks.wait(deadline, tell_late)) refuse_after_fork();
}

/// The same without a deadline.
template <Device... Ds, class Body>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body) {
  run_shards(plan, devices, body, Clock::never, []() noexcept {});
}

}  // namespace fanout::inline v0
