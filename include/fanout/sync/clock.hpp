// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <time.h>

#include <fanout/base/duration.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A monotonic clock. Not one of std::chrono, which costs more to include than much of fanout.
struct Clock {
  using Time = std::int64_t;                ///< in nanoseconds
  static constexpr Time never = INT64_MAX;  ///< later than all others

  /// The time now.
  static Time now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return Time{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  /// The time `duration` from now. `never` if it cannot be counted.
  static Time after(const Duration& duration) noexcept {
    const Time from = now();
    return duration.nanoseconds() > never - from ? never : from + duration.nanoseconds();
  }

  static Time earlier(Time a, Time b) noexcept { return a < b ? a : b; }
};

}}}  // namespace fanout::v0::detail
