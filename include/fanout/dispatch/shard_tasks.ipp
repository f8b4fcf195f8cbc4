// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/dispatch/shard_tasks.hpp>

#include <cstdint>

#include <fanout/base/error.hpp>
#include <fanout/sync/spin.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void ShardTask::queue(const ShardRunner& runner) noexcept {
  remember(runner);
  ticket_ = queued;
  worker->post(*this);
}

bool ShardTask::wait(const DoneFlags& flags, const WaitRules& rules, std::int64_t takes, std::uint32_t epoch,
                     Clock::Time until) noexcept {
  if (ticket_ == 0 || (!is_handed() && is_done())) return true;
  std::int64_t ticks = worker->spin_ticks(rules, takes);
  if (!is_handed()) return Task::wait(ticks, epoch, until);
  if (flags) {
    if ((until != Clock::never && ticks == Ticks::forever) || epoch != fork_epoch()) ticks = 0;
    const Atomic<bool>& ended = flags[shard];
    if (spin(ticks, [&] { return ended.load(MemoryOrder::acquire); })) return true;
    ticks = 0;
  }
  return worker->handoff().await(ticket_, ticks, epoch, until);
}

void ShardTask::defer(const ShardRunner& runner, const WaitRules& rules) noexcept {
  remember(runner);
  ticket_ = left;
  if (!worker->defer(*this)) post(runner, rules);
}

void ShardTask::remember(const ShardRunner& runner) noexcept {
  runner_ = &runner;
  prepare([](Task& self) noexcept {
    const auto& own = static_cast<ShardTask&>(self);
    own.runner_->modes.restore();
    own.runner_->run(own.runner_->body, own.shard);
  });
}

void ShardTask::run() noexcept {
  const FloatingPointScope scope;
  if (is_handed()) {
    worker->handoff().run_taken_back();
  } else {
    Task::run();
  }
}

void refuse_after_fork() {
  throw Error(explain({.what = "the process was forked while a forward was running",
                       .where = "the child",
                       .expected = "calls to be made before or after fork, or to exec in the child",
                       .found = "shards that run in the parent only"}));
}

}}}  // namespace fanout::v0::detail
