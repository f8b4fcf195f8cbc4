// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/task.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Tasks in the order in which they came, from any thread. pop() takes the first one, and remove() takes one back. The
/// usual case, one task at a time, is one compare-and-swap on one word. Only tasks that find that word taken go into a
/// list.
class TaskQueue {
 public:
  void push(Task& task) noexcept {
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

  /// Returns the first task, or null. The caller must run it.
  Task* pop() noexcept {
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

  /// Takes a pushed task out of the queue. Returns false if another thread has taken it: then it runs or has run.
  bool remove(Task& task) noexcept {
    Task* expected = &task;
    if (first_.compare_exchange_strong(expected, nullptr, MemoryOrder::acq_rel)) return true;
    if (behind_.load(MemoryOrder::acquire) == 0) return false;
    const ForkSafeLock listing(list_right_);
    if (task.listed_ != list_) return false;
    unlink(task);
    return true;
  }

  bool empty() const noexcept {
    return first_.load(MemoryOrder::seq_cst) == nullptr && behind_.load(MemoryOrder::seq_cst) == 0;
  }

  /// Forgets all tasks. In the child of a fork they belong to the parent.
  void forget() noexcept {
    first_.store(nullptr);
    head_ = last_ = nullptr;
    ++list_;
    behind_.store(0);
  }

 private:
  void unlink(Task& task) noexcept {
    (task.previous_ != nullptr ? task.previous_->next_ : head_) = task.next_;
    (task.next_ != nullptr ? task.next_->previous_ : last_) = task.previous_;
    task.listed_ = 0;
    behind_.fetch_sub(1, MemoryOrder::acq_rel);
  }

  Atomic<Task*> first_{nullptr};
  Atomic<std::uint32_t> behind_{0};  // number of tasks in the list
  ForkSafeMutex list_right_;
  Task* head_ = nullptr;
  Task* last_ = nullptr;
  std::uint32_t list_ = 1;  // another number after a fork, when the tasks of the earlier list are forgotten
};

}}}  // namespace fanout::v0::detail
