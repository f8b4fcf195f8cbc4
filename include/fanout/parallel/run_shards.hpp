// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/task.hpp>
#include <fanout/device/worker.hpp>
#include <fanout/plan/plan.hpp>
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
/// Throws Error in a process that was forked while `body` ran: the shards on other threads stayed in the parent.
template <Device... Ds, class Body>
void run_shards(const Plan& plan, const DeviceSet<Ds...>& devices, const Body& body) {
  struct ShardTask : Task {
    const Body* body = nullptr;
    Worker* worker = nullptr;
    std::size_t shard = 0;
    bool posted = false;

    static void run_body(Task& task) noexcept {
      const auto& self = static_cast<ShardTask&>(task);
      (*self.body)(self.shard);
    }
  };

  const std::uint32_t epoch = fork_epoch();
  InlineArray<ShardTask> tasks(plan.size());
  ShardTask* mine = nullptr;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    ShardTask& task = tasks[i];
    task.body = &body;
    task.shard = i;
    devices.visit(plan[i].device, [&task](const auto& device) { task.worker = &device.worker(); });
    if (mine == nullptr && plan[i].device == 0 && task.worker->right().try_take()) {
      mine = &task;
    } else {
      task.prepare(&ShardTask::run_body);
      task.posted = true;
      task.worker->post(task);
    }
  }
  if (mine != nullptr) {
    body(mine->shard);
    if (epoch == fork_epoch()) mine->worker->right().give();  // what was held before a fork is not held in the child
  }
  for (std::size_t i = tasks.size(); i > 0; --i) {
    ShardTask& task = tasks[i - 1];
    if (task.posted && !task.is_done() && task.worker->take_back(task)) task.run();
  }
  bool ended = true;
  for (ShardTask& task : tasks) {
    if (task.posted) ended = task.wait(task.worker->spins(), epoch) && ended;
  }
  if (!ended) {
    throw Error(explain({.what = "the process was forked while a forward was running",
                         .where = "the child",
                         .expected = "calls to be made before or after fork, or to exec in the child",
                         .found = "shards that run in the parent only"}));
  }
}

}  // namespace fanout::inline v0
