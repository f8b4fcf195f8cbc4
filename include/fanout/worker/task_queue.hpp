// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/task.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Tasks in the order in which they came, from any thread. pop() takes the first one, and remove() takes one back. The
/// usual case, one task at a time, is one compare-and-swap on one word. Only tasks that find that word taken go into a
/// list.
class TaskQueue {
 public:
  FANOUT_INLINE void push(Task& task) noexcept;

  /// Returns the first task, or null. The caller must run it.
  FANOUT_INLINE Task* pop() noexcept;

  /// Takes a pushed task out of the queue. Returns false if another thread has taken it: then it runs or has run.
  FANOUT_INLINE bool remove(Task& task) noexcept;

  bool empty() const noexcept {
    return first_.load(MemoryOrder::seq_cst) == nullptr && behind_.load(MemoryOrder::seq_cst) == 0;
  }

  /// Forgets all tasks. In the child of a fork they belong to the parent.
  FANOUT_INLINE void forget() noexcept;

 private:
  FANOUT_INLINE void unlink(Task& task) noexcept;

  Atomic<Task*> first_{nullptr};
  Atomic<std::uint32_t> behind_{0};  // number of tasks in the list
  ForkSafeMutex list_right_;
  Task* head_ = nullptr;
  Task* last_ = nullptr;
  std::uint32_t list_ = 1;  // another number after a fork, when the tasks of the earlier list are forgotten
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/task_queue.ipp>
#endif
