// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Spans of time, in nanoseconds, and when the next is likely to end. A mean, to which each adds a quarter, of how far
/// they lie from it another one, and which of the last eight lay near: one that lies far off, since a thread had to
/// stand back, is then one of eight, and moves neither mean by much.
class Rhythm {
 public:
  void note(std::int64_t span) noexcept {
    const std::int64_t mean = mean_.load(MemoryOrder::relaxed);
    const std::uint32_t near = near_.load(MemoryOrder::relaxed);
    const bool differs = span > 2 * mean || 2 * span < mean;
    if (differs && (near & 3U) == 0) {  // something else began: what was before says nothing about it
      mean_.store(span, MemoryOrder::relaxed);
      deviation_.store(widest(span), MemoryOrder::relaxed);
      near_.store(0, MemoryOrder::relaxed);
      return;
    }
    const std::int64_t most = widest(mean);
    const std::int64_t off = span - mean;
    const std::int64_t far = off < 0 ? -off : off;
    mean_.store(mean + (far <= most ? off : off < 0 ? -most : most) / 4, MemoryOrder::relaxed);
    near_.store((near << 1U | (far <= most ? 1U : 0U)) & 0xffU, MemoryOrder::relaxed);
    if (far > most) return;
    const std::int64_t deviation = deviation_.load(MemoryOrder::relaxed);
    const int share = far < deviation / 4 ? 2 : 4;  // so that a rhythm is learnt within a few spans
    deviation_.store(deviation + (far - deviation) / share, MemoryOrder::relaxed);
  }

  /// Of the last eight.
  int near() const noexcept { return std::popcount(near_.load(MemoryOrder::relaxed)); }
  std::int64_t deviation() const noexcept { return deviation_.load(MemoryOrder::relaxed); }
  std::int64_t mean() const noexcept { return mean_.load(MemoryOrder::relaxed); }

  /// How far from the mean the next is likely to end.
  std::int64_t margin() const noexcept {
    const std::int64_t likely = 4 * deviation();
    const std::int64_t most = widest(mean());
    return likely < narrowest ? narrowest : likely < most ? likely : most;
  }

 private:
  /// A thread that wakes by itself is late by some ten microseconds.
  static constexpr std::int64_t narrowest = 100'000;

  /// So that looking takes a few percent of the time at most, but where calls come within a few milliseconds.
  static std::int64_t widest(std::int64_t mean) noexcept { return mean / 32 > 150'000 ? mean / 32 : 150'000; }

  Atomic<std::int64_t> mean_{0};
  Atomic<std::int64_t> deviation_{0};
  Atomic<std::uint32_t> near_{0};
};

/// When work came to an idle device, and when the next may be expected: after a time without work, or after the work
/// before came, whichever was the steadier. Only gaps after which the thread had stopped looking are told. Any thread
/// may tell one; if two do so at the same time, one of them may be lost, which does no harm.
class Arrivals {
 public:
  /// The device was idle from `idle_since` on, and work came now.
  void note(Clock::Time idle_since, Clock::Time now) noexcept {
    after_idle_.note(now - idle_since);
    const Clock::Time last = last_.load(MemoryOrder::relaxed);
    if (last != 0) after_last_.note(now - last);
    last_.store(now, MemoryOrder::relaxed);
  }

  /// The span in which the next work is likely to come.
  struct Window {
    Clock::Time begin;
    Clock::Time end;
  };

  /// Whether it pays to be awake in the window: at least half of the last ones came in theirs.
  bool are_regular() const noexcept { return after_idle_.near() >= 4 || after_last_.near() >= 4; }

  /// Of a device that is idle since then, if the gaps are regular.
  Window next(Clock::Time idle_since) const noexcept {
    const int more = after_idle_.near() - after_last_.near();
    if (more > 0 || (more == 0 && after_idle_.deviation() <= after_last_.deviation())) {
      return around(idle_since, after_idle_);
    }
    return around(last_.load(MemoryOrder::relaxed), after_last_);
  }

 private:
  static Window around(Clock::Time since, const Rhythm& rhythm) noexcept {
    const Clock::Time expected = since + rhythm.mean();
    const std::int64_t margin = rhythm.margin();
    return {expected - margin, expected + margin};
  }

  Rhythm after_idle_;
  Rhythm after_last_;
  Atomic<Clock::Time> last_{0};
};

}}}  // namespace fanout::v0::detail
