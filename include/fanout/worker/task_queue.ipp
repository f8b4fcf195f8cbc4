// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/task_queue.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void TaskQueue::push(Task& task) noexcept {
  task.listed_ = 0;
  Task* none = nullptr;
  if (behind_.load(MemoryOrder::seq_cst) == 0 && first_.compare_exchange_strong(none, &task)) return;
  const ForkSafeLock listing(list_right_);
  task.previous_ = last_;
  task.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : head_) = &task;
  last_ = &task;
  task.listed_ = list_;
  behind_.fetch_add(1, MemoryOrder::seq_cst);
}

bool TaskQueue::remove(Task& task) noexcept {
  Task* expected = &task;
  if (first_.compare_exchange_strong(expected, nullptr, MemoryOrder::acq_rel)) return true;
  if (behind_.load(MemoryOrder::acquire) == 0) return false;
  const ForkSafeLock listing(list_right_);
  if (task.listed_ != list_) return false;
  unlink(task);
  return true;
}

void TaskQueue::forget() noexcept {
  first_.store(nullptr);
  head_ = last_ = nullptr;
  ++list_;
  behind_.store(0);
}

void TaskQueue::unlink(Task& task) noexcept {
  (task.previous_ != nullptr ? task.previous_->next_ : head_) = task.next_;
  (task.next_ != nullptr ? task.next_->previous_ : last_) = task.previous_;
  task.listed_ = 0;
  behind_.fetch_sub(1, MemoryOrder::acq_rel);
}

Task* TaskQueue::pop() noexcept {
  if (first_.load(MemoryOrder::relaxed) != nullptr) {
    if (Task* task = first_.exchange(nullptr, MemoryOrder::acq_rel)) return task;
  }
  if (behind_.load(MemoryOrder::acquire) == 0) return nullptr;
  const ForkSafeLock listing(list_right_);
  // Once more: since the first look, a task may have come there, and a later one of the same thread into the list.
  if (Task* task = first_.exchange(nullptr, MemoryOrder::acq_rel)) return task;
  Task* task = head_;
  if (task != nullptr) unlink(*task);
  return task;
}

}}}  // namespace fanout::v0::detail
