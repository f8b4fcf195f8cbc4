// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/annotate.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout::inline v0 {

namespace detail {

FANOUT_EXPORT inline Atomic<std::uint64_t> nanoseconds_per_tick{0};  // the bits of a double

}  // namespace detail

/// The processor's own counter: cheaper to read than the Clock, for spans of microseconds where an error of some
/// percent does no harm. It may differ a little from core to core.
struct Ticks {
  static constexpr std::int64_t forever = INT64_MAX;

  static std::int64_t now() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#elif defined(__aarch64__)
    std::int64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return Clock::now();
#endif
  }

  /// How many there are in so many nanoseconds.
  static std::int64_t in(std::int64_t nanoseconds) noexcept {
    return to_integer(static_cast<double>(nanoseconds) / rate());
  }

  /// How long so many ticks take, in nanoseconds.
  static std::int64_t nanoseconds(std::int64_t ticks) noexcept {
    return to_integer(static_cast<double>(ticks) * rate());
  }

 private:
  static std::int64_t to_integer(double number) noexcept {
    return number < 9.2e18 ? static_cast<std::int64_t>(number) : forever;
  }

  /// Nanoseconds in a tick. Measures that for 20 us when it is asked first.
  static double rate() noexcept {
    const std::uint64_t known = detail::nanoseconds_per_tick.load(MemoryOrder::relaxed);
    return known != 0 ? __builtin_bit_cast(double, known) : measure();
  }

  [[gnu::noinline]] static double measure() noexcept {
    const Clock::Time begin = Clock::now();
    const std::int64_t first = now();
    Clock::Time end = begin;
    while (end - begin < 20'000) end = Clock::now();
    const auto ticks = static_cast<double>(now() - first);
    const double measured = ticks > 0 ? static_cast<double>(end - begin) / ticks : 1;
    detail::nanoseconds_per_tick.store(__builtin_bit_cast(std::uint64_t, measured), MemoryOrder::relaxed);
    return measured;
  }
};

}  // namespace fanout::inline v0
