// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/dispatch/fork_join.hpp>

#include <cstddef>

#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void ForkJoin::dispatch_all() {
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

void ForkJoin::join_others(ShardTasks& tasks) {
  for (std::size_t i = tasks.size(); i > 0; --i) {
    ShardTask& task = tasks[i - 1];
    if (task.take_back()) {
      devices_[0].worker->take_caller_from(*task.worker);
      task.run_here(runner_);
      tell_if_late();
    } else if (task.is_deferred() && times_ != nullptr) {
      times_->note_found();
    }
  }
  if (!tasks.wait(runner_, deadline_)) refuse_after_fork();
  if (decision_) decision_->all_ended(plan_->size());
}

void ForkJoin::defer_others(ShardTasks& tasks) noexcept {
  for (ShardTask& task : tasks) {
    if (own_ == none && (*plan_)[task.shard].device == 0) {
      own_ = task.shard;
    } else {
      task.defer(runner_, tasks.rules());
    }
  }
}

void ForkJoin::post_others(ShardTasks& tasks, bool defers_asleep) noexcept {
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
  if (lock_main_device()) {
    own_ = first->shard;
  } else {
    first->post(runner_, tasks.rules(), tasks.takes());
  }
}

ShardTask* ForkJoin::take_back() noexcept { return tasks_ ? tasks_->take_back() : nullptr; }

}}}  // namespace fanout::v0::detail
