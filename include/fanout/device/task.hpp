// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout::inline v0 {

/// A piece of work for a device, that one thread waits for. Whoever makes it keeps it alive until it is done; it stands
/// in a worker's queue by itself, so queueing allocates nothing. One cache line: request and reply travel together.
class alignas(64) Task {
 public:
  using Run = void (*)(Task&) noexcept;

  Task() noexcept = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  /// Makes the task ready to be posted. Nobody else knows it then.
  void prepare(Run what) noexcept {
    run_ = what;
    state_.store(open, MemoryOrder::relaxed);
  }

  /// Runs it on this thread and tells the one who waits. The task may be gone when this returns.
  void run() noexcept {
    run_(*this);
    if (state_.exchange(done, MemoryOrder::acq_rel) == awaited) unpark_all(state_);
  }

  bool is_done() const noexcept { return state_.load(MemoryOrder::acquire) == done; }

  /// Waits until the task has run, spinning for `spins` turns before it sleeps. False if that cannot happen any more:
  /// the process was forked after `epoch`, and the thread that ran the task does not exist in the child.
  bool wait(std::uint32_t spins, std::uint32_t epoch) noexcept {
    for (std::uint32_t i = 0; i < spins && !is_done(); ++i) pause();
    while (!is_done()) {
      if (epoch != fork_epoch()) return false;
      if (will_wake()) park(state_, awaited);
    }
    return true;
  }

  /// Waits the same way, but not for longer than the clock shows less than `until`. False if the task is not done.
  bool wait_until(Clock::Time until, std::uint32_t spins, std::uint32_t epoch) noexcept {
    for (std::uint32_t i = 0; i < spins && !is_done(); ++i) pause();
    while (!is_done()) {
      if (epoch != fork_epoch() || Clock::now() >= until) return false;
      if (will_wake()) park_until(state_, awaited, until);
    }
    return true;
  }

 private:
  friend class TaskQueue;

  static constexpr std::uint32_t open = 0;
  static constexpr std::uint32_t awaited = 1;
  static constexpr std::uint32_t done = 2;

  /// Lets who runs the task know that someone sleeps. False if it is done.
  bool will_wake() noexcept {
    std::uint32_t seen = open;
    return state_.compare_exchange_strong(seen, awaited, MemoryOrder::acq_rel) || seen == awaited;
  }

  Run run_ = nullptr;
  Task* next_ = nullptr;
  Task* previous_ = nullptr;
  Atomic<std::uint32_t> state_{done};
};

}  // namespace fanout::inline v0
