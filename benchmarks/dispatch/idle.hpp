// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include <harness/ticks.hpp>

namespace benchmarks {

/// The gaps between calls: each ends at its own time on the clock, `gap` nanoseconds after the one before, give or take
/// up to `jitter` times as much, the same in every run. Gaps from half a millisecond on are slept through, shorter ones
/// pass with work.
class Gaps {
 public:
  Gaps(double gap, double jitter) : gap_(gap), jitter_(jitter), next_(nanoseconds()) {
    prctl(PR_SET_TIMERSLACK, 1UL);  // sleep as long as asked for
  }

  void pass() {
    if (gap_ <= 0) return;
    next_ = std::max(next_ + static_cast<std::int64_t>(gap_ * (1 + jitter_ * random())), nanoseconds());
    if (gap_ < 500'000) {
      while (nanoseconds() < next_) {
      }
      return;
    }
    timespec until{};
    until.tv_sec = next_ / 1'000'000'000;
    until.tv_nsec = next_ % 1'000'000'000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) != 0) {
    }
  }

 private:
  /// From -1 to 1.
  double random() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-52 - 1;
  }

  double gap_;
  double jitter_;
  std::int64_t next_;
  std::uint64_t state_ = 0x9E3779B97F4A7C15;
};

}  // namespace benchmarks
