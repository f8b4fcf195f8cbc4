// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/requirements.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The wake-up latency of a device's thread: the time from the wake-up call until the thread starts its request. A
/// moving average over this process, in which each new value counts 1/8. Thread-safe; of two notes at the same time one
/// may be lost.
class WakeLatency {
 public:
  /// In nanoseconds; 50 us before the first note().
  std::int64_t nanoseconds() const noexcept { return mean_.load(MemoryOrder::relaxed); }

  /// Notes that a thread started its request so many ticks after the wake-up call.
  void note(std::int64_t ticks) noexcept {
    // Outliers show how busy the machine was, not the latency.
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

/// Of all devices' threads of this process.
[[gnu::visibility("default")]] inline WakeLatency wake_latency;

}}}  // namespace fanout::v0::detail
