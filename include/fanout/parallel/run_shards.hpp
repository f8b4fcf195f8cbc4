// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/device/device_set.hpp>
#include <fanout/device/wake_cost.hpp>
#include <fanout/parallel/body_time.hpp>
#include <fanout/parallel/shard_tasks.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Which shards a call does not hand out.
enum class Keeping { none, asleep, all };

/// Below that it takes longer to hand a shard out than to run it, in nanoseconds: a cache line that travels from core
/// to core and back, and what stands around it.
inline constexpr std::int64_t handing_out_costs = 300;

/// Whether a call that takes so long for each of its shards is to run those itself whose devices' threads sleep, or
/// all. Handing them out must gain more than it costs.
template <class Tasks>
Keeping what_to_keep(Tasks& tasks, std::int64_t expected) noexcept {
  if (expected == BodyTime::unknown || !tasks.rules().keeps_small) return Keeping::none;
  const auto others = static_cast<std::int64_t>(tasks.size()) - 1;
  if (expected * (others + 1) < handing_out_costs) return Keeping::all;
  std::int64_t asleep = 0;
  for (auto& task : tasks) asleep += task.shard != 0 && task.worker->is_asleep() ? 1 : 0;
  return asleep != 0 && expected * asleep < wake_cost.nanoseconds() ? Keeping::asleep : Keeping::none;
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
/// Where `time` is given, it is told how long shards take, and shards that are expected to take less time than handing
/// them out are not handed out; see Adaptive.
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
                const TellLate& tell_late, BodyTime* time = nullptr) {
  ShardTasks tasks(plan.size());
  if constexpr (requires { body.tasks_are(tasks); }) body.tasks_are(tasks);
  for (std::size_t i = 0; i < plan.size(); ++i) tasks.place(i, plan[i], devices);
  const std::int64_t expected =
      time == nullptr || plan.size() < 2 ? BodyTime::unknown : time->expected(plan[0].rows.size());
  const detail::Keeping keeping = detail::what_to_keep(tasks, expected);
  // The main device's first shard last: what that takes goes by while the others' requests travel.
  ShardTask* first = nullptr;
  for (ShardTask& task : tasks) {
    if (first == nullptr && plan[task.shard].device == 0) {
      first = &task;
    } else if (keeping == detail::Keeping::none || (keeping == detail::Keeping::asleep && !task.worker->is_asleep())) {
      task.post(body, tasks.rules());
    } else {
      if (keeping == detail::Keeping::asleep) task.worker->note_left(2 * expected);
      task.leave(body, tasks.rules());
    }
  }
  ShardTask* mine = first != nullptr && first->worker->right().try_take() ? first : nullptr;
  if (first != mine) first->post(body, tasks.rules());
  tasks.all_are_posted();
  if (mine != nullptr) {
    const bool timed = time != nullptr && plan.size() > 1 && tasks.rules().keeps_small;
    const std::int64_t begin = timed ? Ticks::now() : 0;
    body(mine->shard);
    if (timed) time->note(plan[mine->shard].rows.size(), Ticks::now() - begin);
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
