// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/sync/futex.hpp>
#include <fanout/worker/registry.hpp>
#include <fanout/worker/thread.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Work of several GPUs that wait for each other. If one fails, the others must be released.
class WatchedWork {
 public:
  WatchedWork() = default;
  WatchedWork(const WatchedWork&) = delete;
  WatchedWork& operator=(const WatchedWork&) = delete;

  /// Looks for a failure, and releases the other GPUs if there is one. Called on the thread of the watch.
  virtual void look() noexcept = 0;

 protected:
  virtual ~WatchedWork() = default;

 private:
  friend class FailureWatch;
  WatchedWork* next_ = nullptr;
};

/// Looks at all watched work each millisecond, on a thread of its own: all threads of a call may be waiting for GPUs
/// that wait for a failed one. The thread is started at first use, sleeps while there is no work, and never ends.
/// Thread-safe.
class FailureWatch {
 public:
  /// Looks at the work from now on. Returns false if no thread can be started.
  bool add(WatchedWork& work) noexcept {
    const fanout::detail::ForkSafeLock adding(mutex_);
    if (epoch_ != fanout::detail::fork_epoch() || !started_) {
      if (!fanout::detail::start_thread(
              backend::registry().cores(),
              [](void* own) -> void* {
                [[maybe_unused]] thread_local const fanout::detail::LibraryInUse this_code;
                static_cast<FailureWatch*>(own)->run();
                return nullptr;
              },
              this, "fanout watch")) {
        return false;
      }
      epoch_ = fanout::detail::fork_epoch();
      started_ = true;
      first_ = looks_at_ = nullptr;  // in the child of a fork, those of the parent
      parked_ = false;
    }
    work.next_ = first_;
    first_ = &work;
    if (parked_) {
      parked_ = false;
      wake_.fetch_add(1, fanout::detail::MemoryOrder::relaxed);
      fanout::detail::unpark_all(wake_);
    }
    return true;
  }

  /// No longer looks at the work. Waits for a look at it that has begun.
  void remove(WatchedWork& work) noexcept {
    for (;;) {
      std::uint32_t looks = 0;
      {
        const fanout::detail::ForkSafeLock removing(mutex_);
        if (epoch_ != fanout::detail::fork_epoch()) return;  // added in the parent of a fork
        if (looks_at_ != &work) {
          WatchedWork** link = &first_;
          while (*link != nullptr && *link != &work) link = &(*link)->next_;
          if (*link != nullptr) *link = work.next_;
          return;
        }
        looks = looks_.load(fanout::detail::MemoryOrder::relaxed);
      }
      fanout::detail::park(looks_, looks);
    }
  }

 private:
  static constexpr fanout::detail::Clock::Time period = 1'000'000;
  static constexpr int idle_periods = 100;  // before it parks: to wake it costs each call some microseconds

  void run() noexcept {
    for (int idle = 0;; ++idle) {
      if (look_at_all()) idle = 0;
      const std::uint32_t wake = wake_.load(fanout::detail::MemoryOrder::relaxed);
      if (idle < idle_periods || !park()) {
        fanout::detail::park_until(wake_, wake, fanout::detail::Clock::now() + period);
      } else {
        idle = 0;
        fanout::detail::park(wake_, wake);
      }
    }
  }

  /// Returns false if there is no work.
  bool look_at_all() noexcept {
    mutex_.lock();
    const bool found = first_ != nullptr;
    for (WatchedWork* work = first_; work != nullptr; work = work->next_) {
      looks_at_ = work;
      mutex_.unlock();
      work->look();  // may take long, if it releases GPUs
      mutex_.lock();
      looks_at_ = nullptr;
      looks_.fetch_add(1, fanout::detail::MemoryOrder::relaxed);
      fanout::detail::unpark_all(looks_);
    }
    mutex_.unlock();
    return found;
  }

  /// Notes that the thread sleeps until it is woken. Returns false if there is work.
  bool park() noexcept {
    const fanout::detail::ForkSafeLock parking(mutex_);
    parked_ = first_ == nullptr;
    return parked_;
  }

  fanout::detail::ForkSafeMutex mutex_;  // guards the members below
  WatchedWork* first_ = nullptr;
  WatchedWork* looks_at_ = nullptr;
  std::uint32_t epoch_ = 0;
  bool started_ = false;
  bool parked_ = false;
  fanout::detail::Atomic<std::uint32_t> wake_{0};   // incremented to wake the thread
  fanout::detail::Atomic<std::uint32_t> looks_{0};  // incremented after each look
};

[[gnu::visibility("default")]] inline FailureWatch failure_watch;

}}}  // namespace fanout::v0::cuda::detail
