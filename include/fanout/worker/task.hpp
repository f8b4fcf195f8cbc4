// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/sync/spin.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A piece of work for a device that one thread waits for. Its maker keeps it alive until it is done. It is itself the
/// node of a worker's queue, so queueing allocates nothing.
class Task {
 public:
  using Run = void (*)(Task&) noexcept;

  Task() noexcept {}  // NOLINT(modernize-use-equals-default): that would set all of it to zero
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Makes the task ready to be posted. No other thread may know it yet.
  void prepare(Run what) noexcept {
    run_ = what;
    state_.store(open, MemoryOrder::relaxed);
  }

  /// Runs the task on this thread, and wakes the thread that waits. The task may be gone on return.
  FANOUT_INLINE void run() noexcept;

  /// Marks the task as done. Only if no thread waits for it.
  void set_done() noexcept { state_.store(done, MemoryOrder::release); }

  bool is_done() const noexcept { return state_.load(MemoryOrder::acquire) == done; }

  /// Waits until the task has run, or until the time `until`. Spins for `spin_ticks` before it sleeps. Returns false if
  /// the task has not run: it is late, or the process was forked after `epoch`, and the thread that ran it does not
  /// exist in the child.
  FANOUT_INLINE bool wait(std::int64_t spin_ticks, std::uint32_t epoch, Clock::Time until = Clock::never) noexcept;

 private:
  friend class TaskQueue;

  static constexpr std::uint32_t open = 0;
  static constexpr std::uint32_t awaited = 1;
  static constexpr std::uint32_t done = 2;

  /// Marks that this thread sleeps, so that the thread that runs the task wakes it. Returns false if the task is done.
  bool will_wake() noexcept {
    std::uint32_t seen = open;
    return state_.compare_exchange_strong(seen, awaited, MemoryOrder::acq_rel) || seen == awaited;
  }

  Run run_;
  Task* next_;
  Task* previous_;
  Atomic<std::uint32_t> state_{done};
  std::uint32_t listed_ = 0;  // the list of its queue that it is in; guarded by the queue's mutex
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/worker/task.ipp>
#endif
