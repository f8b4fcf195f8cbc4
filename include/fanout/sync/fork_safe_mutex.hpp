// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A mutex that is unlocked in the child of a fork, whichever thread of the parent held it. Locking a free one is one
/// compare-and-swap.
class ForkSafeMutex {
 public:
  /// Locks if the mutex is free, and returns true if it did. Does not wait.
  bool try_lock() noexcept { return take_free(held); }

  /// Locks. Waits as long as another thread holds the mutex.
  void lock() noexcept {
    if (!take_free(held)) wait_for_it();
  }

  /// Unlocks and wakes the threads that wait. Only the holder may call it.
  void unlock() noexcept {
    if ((word_.exchange(now() | free, MemoryOrder::release) & 3U) == held_and_wanted) unpark_all(word_);
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t held_and_wanted = 2;

  static std::uint32_t now() noexcept { return fork_epoch() << 2U; }

  FANOUT_INLINE void wait_for_it() noexcept;

  bool take_free(std::uint32_t as) noexcept {
    std::uint32_t seen = word_.load(MemoryOrder::relaxed);
    while ((seen & 3U) == free || (seen & ~3U) != now()) {
      if (word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)) {
        return true;
      }
    }
    return false;
  }

  Atomic<std::uint32_t> word_{free};
};

/// Holds the mutex as long as it lives. After a fork by its own thread, the copy in the child does not unlock: the
/// mutex is free there, and another thread may have locked it.
class ForkSafeLock {
 public:
  explicit ForkSafeLock(ForkSafeMutex& mutex) noexcept : mutex_(mutex), epoch_(fork_epoch()) { mutex_.lock(); }
  ForkSafeLock(const ForkSafeLock&) = delete;
  ForkSafeLock& operator=(const ForkSafeLock&) = delete;
  ~ForkSafeLock() {
    if (epoch_ == fork_epoch()) mutex_.unlock();
  }

 private:
  ForkSafeMutex& mutex_;
  std::uint32_t epoch_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/sync/fork_safe_mutex.ipp>
#endif
