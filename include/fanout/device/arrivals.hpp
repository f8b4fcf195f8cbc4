// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout::inline v0 {

/// When work came to an idle device, and when the next may be expected: means of the gaps and of how far they lie from
/// that, each new one counting a quarter. Only gaps after which the thread had stopped looking are told. Any thread may
/// tell one; if two do so at the same time, one of them may be lost, which does no harm.
class Arrivals {
 public:
  /// The device was idle from `idle_since` on, and work came now.
  void note(Clock::Time idle_since, Clock::Time now) noexcept {
    const std::int64_t gap = now - idle_since;
    const std::int64_t mean = mean_.load(MemoryOrder::relaxed);
    if (gap > 2 * mean || 2 * gap < mean) {  // something else began: what was before says nothing about it
      mean_.store(gap, MemoryOrder::relaxed);
      deviation_.store(gap / 2, MemoryOrder::relaxed);
      return;
    }
    const std::int64_t off = gap - mean;
    const std::int64_t deviation = deviation_.load(MemoryOrder::relaxed);
    mean_.store(mean + off / 4, MemoryOrder::relaxed);
    const std::int64_t far = off < 0 ? -off : off;
    const int share = far < deviation / 4 ? 2 : 4;  // so that a rhythm is learnt within a few gaps
    deviation_.store(deviation + (far - deviation) / share, MemoryOrder::relaxed);
  }

  /// The span in which the next work is likely to come.
  struct Window {
    Clock::Time begin;
    Clock::Time end;
  };

  /// Whether gaps are so regular that it pays to be awake in their window.
  bool are_regular() const noexcept { return deviation_.load(MemoryOrder::relaxed) * 3 <= 2 * widest(); }

  /// Of a device that is idle since then, if the gaps are regular.
  Window next(Clock::Time idle_since) const noexcept {
    const Clock::Time expected = idle_since + mean_.load(MemoryOrder::relaxed);
    const std::int64_t likely = 4 * deviation_.load(MemoryOrder::relaxed);
    const std::int64_t margin = likely < narrowest ? narrowest : likely < widest() ? likely : widest();
    return {expected - margin, expected + margin};
  }

 private:
  /// A thread that wakes by itself is late by some ten microseconds.
  static constexpr std::int64_t narrowest = 100'000;

  /// So that looking takes a few percent of the time at most, but where calls come within a few milliseconds.
  std::int64_t widest() const noexcept {
    const std::int64_t share = mean_.load(MemoryOrder::relaxed) / 32;
    return share > 150'000 ? share : 150'000;
  }

  Atomic<std::int64_t> mean_{0};
  Atomic<std::int64_t> deviation_{INT64_MAX / 8};
};

}  // namespace fanout::inline v0
