// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string_view>

#include <fanout/measure/progress.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class CallClock;
class CallObserver;
class DeviceTable;

/// A call that begins to be measured. Borrows all.
struct MeasuredStart {
  CallObserver* observer;  ///< of the model; null if only the process measures the call
  const DeviceTable& devices;
  std::string_view model;  ///< the name of the model's type
  bool asynchronous = false;
  CallTimes::Step step = {};
};

/// Is told of the calls that end, each with its times. It also brings the code that measures a call, so programs
/// without an observer have none of it.
class CallObserver {
 public:
  /// Makes the clock of a call: &make_call_clock, of call_clock.hpp.
  using MakeClock = CallClock*(const MeasuredStart& start) noexcept;

  CallObserver(const CallObserver&) = delete;
  CallObserver& operator=(const CallObserver&) = delete;
  /// Called from the thread that ends the call, by several threads at once.
  virtual void ended(const CallTimes& call) noexcept = 0;
  /// An asynchronous call may end after its model. It retains the model's observer, and releases it afterwards.
  virtual void retain() noexcept {}
  virtual void release() noexcept {}
  /// Called by the thread that ran a shard, when that has ended without an exception; by several threads at once.
  virtual void shard_ended(const Progress&) noexcept {}

  // A pointer, not a virtual function: g++ guesses the target of a virtual call, and emits the target's code in each
  // file that makes the call.
  MakeClock* const make_clock;

 protected:
  explicit CallObserver(MakeClock* make) noexcept : make_clock(make) {}
  ~CallObserver() = default;
};

/// The observer of all calls of the process, if there is one. One of before a fork does not count in the child.
class ProcessObserver {
 public:
  /// True if there is one. A call asks this when it begins.
  bool exists() const noexcept { return exists_.load(MemoryOrder::relaxed); }
  /// The flag that exists() reads.
  const Atomic<bool>& flag() const noexcept { return exists_; }

  /// Sets the observer. Returns false if there is one already. Borrows it until unset().
  bool set(CallObserver& observer) noexcept {
    const ForkSafeLock changing(mutex_);
    if (counts()) return false;
    observer_ = &observer;
    epoch_ = fork_epoch();
    exists_.store(true, MemoryOrder::relaxed);
    return true;
  }

  /// Unsets the observer, unless it is another one. Afterwards it is not called any more.
  void unset(const CallObserver& observer) noexcept {
    const ForkSafeLock changing(mutex_);
    if (observer_ != &observer) return;
    observer_ = nullptr;
    exists_.store(false, MemoryOrder::relaxed);
  }

  /// Makes a clock, if there is still an observer.
  CallClock* make_clock(const MeasuredStart& start) const noexcept {
    const ForkSafeLock calling(mutex_);
    return counts() ? observer_->make_clock(start) : nullptr;
  }

  /// Tells the observer of a call, if there is still one.
  void ended(const CallTimes& call) noexcept {
    const ForkSafeLock calling(mutex_);
    if (counts()) observer_->ended(call);
  }

 private:
  bool counts() const noexcept { return observer_ != nullptr && epoch_ == fork_epoch(); }

  Atomic<bool> exists_{false};
  mutable ForkSafeMutex mutex_;
  CallObserver* observer_ = nullptr;
  std::uint32_t epoch_ = 0;  // of the observer
};

[[gnu::visibility("default")]] inline ProcessObserver process_observer;

}}}  // namespace fanout::v0::detail
