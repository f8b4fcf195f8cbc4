// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/exchange.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Is told of the calls that end, each with its times.
class CallObserver {
 public:
  CallObserver(const CallObserver&) = delete;
  CallObserver& operator=(const CallObserver&) = delete;
  /// Called from the thread that ends the call, by several threads at once.
  virtual void ended(const CallTimes& call) noexcept = 0;

 protected:
  CallObserver() = default;
  ~CallObserver() = default;
};

/// The observer of all calls of the process, if there is one.
class ProcessObserver {
 public:
  /// True if there is one. A call asks this when it begins.
  bool exists() const noexcept { return exists_.load(MemoryOrder::relaxed); }

  /// Sets the observer, or none. Afterwards the one before is not called any more. Borrows it.
  CallObserver* exchange(CallObserver* next) noexcept {
    const ForkSafeLock changing(mutex_);
    exists_.store(next != nullptr, MemoryOrder::relaxed);
    return detail::exchange(observer_, next);
  }

  /// Tells the observer of a call, if there is still one.
  void ended(const CallTimes& call) noexcept {
    const ForkSafeLock calling(mutex_);
    if (observer_ != nullptr) observer_->ended(call);
  }

 private:
  Atomic<bool> exists_{false};
  ForkSafeMutex mutex_;
  CallObserver* observer_ = nullptr;
};

[[gnu::visibility("default")]] inline ProcessObserver process_observer;

}}}  // namespace fanout::v0::detail
