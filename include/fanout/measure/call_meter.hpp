// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/measure/call_observer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Measures a call, if its model or the process has an observer. The call ends when this goes out of scope.
class CallMeter {
 public:
  /// Measures nothing until begin().
  CallMeter() noexcept = default;
  CallMeter(CallMeter&& other) noexcept : clock_(std::exchange(other.clock_, nullptr)) {}
  CallMeter& operator=(CallMeter&&) = delete;
  ~CallMeter() {
    if (clock_ != nullptr) [[unlikely]]
      end();
  }

  /// Call this when the call begins. Borrows and retains what CallClock does. Without memory, the call is not measured.
  void begin(const MeasuredStart& start) noexcept {
    if (start.observer != nullptr || process_observer.exists()) [[unlikely]]
      make_clock(start);
  }
  /// The clock of the call; null if it is not measured.
  CallClock* clock() const noexcept { return clock_; }

  /// Call this when the result of an asynchronous call is asked for, and all shards have ended.
  [[gnu::cold]] FANOUT_INLINE void result_is_asked_for() const noexcept;

 private:
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void make_clock(const MeasuredStart& start) noexcept;
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void end() noexcept;

  CallClock* clock_ = nullptr;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/measure/call_meter.ipp>
#endif
