// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/annotate.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How long it takes until a device's thread that sleeps has begun what it was woken for: a mean of what was seen in
/// this process, in which each new one counts an eighth.
class WakeCost {
 public:
  /// In nanoseconds; 50 us before any was seen.
  std::int64_t nanoseconds() const noexcept { return mean_.load(MemoryOrder::relaxed); }

  /// One was woken and began so many ticks later. From any thread; of two at the same time one may be lost.
  void note(std::int64_t ticks) noexcept {
    // What is far off says how busy the machine was, and not what a wake costs.
    constexpr std::int64_t shortest = 1'000;
    constexpr std::int64_t longest = 500'000;
    const std::int64_t seen = Ticks::nanoseconds(ticks);
    const std::int64_t taken = seen < shortest ? shortest : seen > longest ? longest : seen;
    const std::int64_t mean = mean_.load(MemoryOrder::relaxed);
    mean_.store(mean + (taken - mean) / 8, MemoryOrder::relaxed);
  }

 private:
  Atomic<std::int64_t> mean_{50'000};
};

/// Of this process's threads.
FANOUT_EXPORT inline WakeCost wake_cost;

}}}  // namespace fanout::v0::detail
