// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace benchmarks {

/// The system's steady clock, in nanoseconds.
inline std::int64_t nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The cheapest clock that is the same on all cores: the time stamp counter, where there is one, else nanoseconds. What
/// stands before it in the program has ended when it is read.
inline std::int64_t ticks() {
#if defined(__x86_64__)
  unsigned core;
  const auto now = static_cast<std::int64_t>(__rdtscp(&core));
  _mm_lfence();
  return now;
#else
  return nanoseconds();
#endif
}

/// What two readings of ticks() one after the other differ by, in ticks: the median.
inline std::int64_t ticks_of_timer() {
  std::array<std::int64_t, 2001> differences{};
  for (std::int64_t& difference : differences) {
    const std::int64_t begin = ticks();
    difference = ticks() - begin;
  }
  std::nth_element(differences.begin(), differences.begin() + 1000, differences.end());
  return differences[1000];
}

/// How long a tick is, from both clocks at two points of time: the further apart, the better.
class TickRate {
 public:
  TickRate() : ticks_(ticks()), nanoseconds_(nanoseconds()) {}

  double nanoseconds_per_tick() const {
    const std::int64_t now = nanoseconds();
    return static_cast<double>(now - nanoseconds_) / static_cast<double>(std::max<std::int64_t>(ticks() - ticks_, 1));
  }

 private:
  std::int64_t ticks_;
  std::int64_t nanoseconds_;
};

}  // namespace benchmarks
