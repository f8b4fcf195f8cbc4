// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The sum of two spans of time that are not negative. At most Clock::never.
constexpr Clock::Time later_by(Clock::Time time, Clock::Time span) noexcept {
  return span > Clock::never - time ? Clock::never : time + span;
}

/// Rounds to whole nanoseconds. At most Clock::never. Callers pass products and quotients only: a compiler may fuse a
/// product with a sum, and would then round otherwise than on another machine.
inline Clock::Time rounded(double nanoseconds) noexcept {
  return nanoseconds < 9.2e18 ? static_cast<Clock::Time>(__builtin_llround(nanoseconds)) : Clock::never;
}

/// The time that `amount` rows or bytes take, at so many per second.
inline Clock::Time time_for(std::size_t amount, double per_second) noexcept {
  return rounded(static_cast<double>(amount) * 1e9 / per_second);
}

/// A time that only moves forward, in nanoseconds. Thread-safe, without a lock.
class VirtualTime {
 public:
  Clock::Time now() const noexcept { return now_.load(MemoryOrder::relaxed); }

  /// Moves to `time`, unless it is there or later.
  void raise(Clock::Time time) noexcept {
    Clock::Time seen = now();
    while (seen < time && !now_.compare_exchange_weak(seen, time, MemoryOrder::relaxed)) {
    }
  }

  /// Begins work now, or at `earliest` if that is later, and moves to its end, which `end_of(begin)` says. Returns the
  /// end.
  template <class EndOf>
  Clock::Time work(Clock::Time earliest, const EndOf& end_of) noexcept {
    Clock::Time seen = now();
    for (;;) {
      const Clock::Time end = end_of(seen < earliest ? earliest : seen);
      if (now_.compare_exchange_weak(seen, end, MemoryOrder::relaxed)) return end;
    }
  }

 private:
  Atomic<Clock::Time> now_{0};
};

}}}  // namespace fanout::v0::detail
