// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A mutex with shared and exclusive locks: calls of a model share it, and update() is exclusive. A shared lock is one
/// compare-and-swap, which also counts it. Unlocking it is one addition. Locks that were held when the process forked
/// do not count in the child.
class SharedMutex {
 public:
  /// Takes a shared lock. Waits while another thread holds the exclusive lock or waits for it. Returns the number of
  /// shared locks taken before, which wraps around.
  // Inlined, which g++ does not do by itself in each call.
  [[gnu::always_inline]] std::uint32_t lock_shared() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if (static_cast<std::uint32_t>(seen) != now() ||
        !word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)) {
      return enter_unless(closed);
    }
    return entered(seen);
  }

  /// Takes a shared lock for a thread that holds a shared lock of this or another mutex. Waits only while another
  /// thread holds the exclusive lock, not while one waits for it. Otherwise four threads could deadlock: two that hold
  /// a shared lock of one mutex each and want that of the other, and two that wait for the exclusive locks.
  std::uint32_t lock_shared_nested() noexcept { return enter_unless(alone); }

  /// Releases a shared lock. The last one wakes the thread that waits for the exclusive lock.
  void unlock_shared() noexcept {
    // A lock that was held at a fork does not count in the child. left_ is read before the word: in between, other
    // threads may lock and unlock.
    const std::uint32_t left = left_.load(MemoryOrder::acquire);
    const std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if ((static_cast<std::uint32_t>(seen) & ~closed) != now() || entered(seen) == left) return;
    // This adds first and then reads the word. lock() writes the word first and then reads the sum. So one of the two
    // sees that no shared lock is left.
    left_.fetch_add(1, MemoryOrder::seq_cst);
    if ((word_.load(MemoryOrder::seq_cst) & closed) != 0) tell_if_last();
  }

  /// Takes the exclusive lock. New shared locks wait from now on. Waits until those that are held are released.
  void lock() noexcept {
    lock([]() noexcept {});
  }

  /// The same. Calls `help()` each time before it sleeps, since holders of shared locks may wait for work that `help`
  /// does. A holder that adds such work calls remind().
  template <class Help>
  void lock(const Help& help) noexcept {
    for (bool mine = false;;) {
      const std::uint32_t turn = turn_.load(MemoryOrder::acquire);
      std::uint64_t seen = current();
      if (!mine && (seen & closed) == 0) {
        mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst);
      } else if (mine && entered(seen) == left_.load(MemoryOrder::seq_cst)) {
        // Fails if lock_shared_nested() took a lock in between.
        if (word_.compare_exchange_weak(seen, seen | alone, MemoryOrder::acq_rel)) return;
      } else {
        help();
        park(turn_, turn);
      }
    }
  }

  /// Called by the holder of a shared lock: a thread that waits in lock(help) calls `help()` again.
  void remind() noexcept {
    // An addition of 0 is a write. If it comes before the write of lock(), then lock() sees what this thread did
    // before. If it comes after, this thread sees that the exclusive lock is wanted.
    if ((word_.fetch_add(0, MemoryOrder::acq_rel) & closed) != 0) signal();
  }

  /// Releases the exclusive lock, and wakes all threads that wait.
  void unlock() noexcept {
    word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release);
    signal();
  }

 private:
  // The word, from its lowest bit: the exclusive lock is wanted (closed), it is held (alone), the fork epoch, and the
  // number of shared locks ever taken. Its lower half is now() if the exclusive lock is not wanted.
  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t alone = 2;
  static constexpr std::uint64_t one = std::uint64_t{1} << 32U;

  static std::uint32_t now() noexcept { return fork_epoch() << 2U; }
  static std::uint32_t entered(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32U); }

  /// Takes a shared lock. Waits while one of these bits is set.
  [[gnu::noinline]] FANOUT_INLINE std::uint32_t enter_unless(std::uint32_t bits) noexcept;

  /// The word, without the locks that were held before a fork.
  FANOUT_INLINE std::uint64_t current() noexcept;

  [[gnu::noinline]] FANOUT_INLINE void tell_if_last() noexcept;

  FANOUT_INLINE void signal() noexcept;

  Atomic<std::uint64_t> word_{now()};
  Atomic<std::uint32_t> left_{0};  // number of shared locks released
  Atomic<std::uint32_t> turn_{0};
};

/// Holds a shared lock as long as it lives.
class SharedLock {
 public:
  SharedLock(SharedMutex& mutex, bool from_inside_another) noexcept : mutex_(mutex) {
    if (from_inside_another) {
      mutex_.lock_shared_nested();
    } else {
      mutex_.lock_shared();
    }
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

/// Holds the exclusive lock as long as it lives. After a fork by its own thread, the copy in the child does not unlock:
/// the mutex is free there, and another thread may have locked it.
class ExclusiveLock {
 public:
  explicit ExclusiveLock(SharedMutex& mutex) noexcept : ExclusiveLock(mutex, []() noexcept {}) {}
  template <class Help>
  ExclusiveLock(SharedMutex& mutex, const Help& help) noexcept : mutex_(mutex), epoch_(fork_epoch()) {
    mutex_.lock(help);
  }
  ExclusiveLock(const ExclusiveLock&) = delete;
  ExclusiveLock& operator=(const ExclusiveLock&) = delete;
  ~ExclusiveLock() {
    if (epoch_ == fork_epoch()) mutex_.unlock();
  }

 private:
  SharedMutex& mutex_;
  std::uint32_t epoch_;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/sync/shared_mutex.ipp>
#endif
