// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Estimates intervals, in nanoseconds: their mean, in which each new one counts 1/4, their mean deviation, and how
/// many of the last eight were near the mean. An outlier, as when a thread is preempted, is one of eight, and moves
/// neither mean by much.
class IntervalEstimate {
 public:
  FANOUT_INLINE void note(std::int64_t span) noexcept;

  /// How many of the last eight intervals were near the mean.
  int near() const noexcept { return std::popcount(near_.load(MemoryOrder::relaxed)); }
  std::int64_t deviation() const noexcept { return deviation_.load(MemoryOrder::relaxed); }
  std::int64_t mean() const noexcept { return mean_.load(MemoryOrder::relaxed); }

  /// Half of the width of the window around the mean, in nanoseconds.
  std::int64_t margin() const noexcept {
    const std::int64_t likely = 4 * deviation();
    const std::int64_t most = widest(mean());
    return likely < narrowest ? narrowest : likely < most ? likely : most;
  }

 private:
  /// A thread that its own timer wakes is late by some ten microseconds.
  static constexpr std::int64_t narrowest = 100'000;

  /// 1/32 of the mean, so that a thread spins for a few percent of the time at most. More only for short intervals.
  static std::int64_t widest(std::int64_t mean) noexcept { return mean / 32 > 150'000 ? mean / 32 : 150'000; }

  Atomic<std::int64_t> mean_{0};
  Atomic<std::int64_t> deviation_{0};
  Atomic<std::uint32_t> near_{0};
};

/// Predicts when the next work comes to an idle device. It estimates two intervals: since the device became idle, and
/// since the last work came. The steadier one predicts. Only intervals in which the thread stopped spinning are noted.
/// Thread-safe; of two notes at the same time one may be lost.
class ArrivalPredictor {
 public:
  /// Notes that the device was idle from `idle_since` on, and work came now.
  FANOUT_INLINE void note(Clock::Time idle_since, Clock::Time now) noexcept;

  /// The interval in which the next work is expected.
  struct Window {
    Clock::Time begin;
    Clock::Time end;
  };

  /// True if at least half of the last eight intervals were as predicted.
  bool are_regular() const noexcept { return after_idle_.near() >= 4 || after_last_.near() >= 4; }

  /// The window of a device that has been idle since `idle_since`. Valid only if are_regular().
  FANOUT_INLINE Window next(Clock::Time idle_since) const noexcept;

 private:
  static Window around(Clock::Time since, const IntervalEstimate& rhythm) noexcept {
    const Clock::Time expected = since + rhythm.mean();
    const std::int64_t margin = rhythm.margin();
    return {expected - margin, expected + margin};
  }

  IntervalEstimate after_idle_;
  IntervalEstimate after_last_;
  Atomic<Clock::Time> last_{0};
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/waiting/arrival_predictor.ipp>
#endif
