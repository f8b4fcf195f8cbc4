// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/processor.hpp>

namespace fanout { inline namespace v0 { namespace detail {

[[gnu::visibility("default")]] inline Atomic<std::uint64_t> nanoseconds_per_tick{0};  // the bits of a double

/// A time of the clock, and the counter's value at that time.
struct TickReading {
  std::int64_t time;
  std::int64_t ticks;
};

/// Reads the clock between two reads of the counter. Keeps the closest of four such readings, since the thread may lose
/// its core between two reads.
template <class ReadClock, class ReadCounter>
TickReading read_both(const ReadClock& clock, const ReadCounter& counter) noexcept {
  TickReading closest{};
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < 4; ++i) {
    const std::int64_t before = counter();
    const std::int64_t time = clock();
    const std::int64_t apart = counter() - before;
    if (apart >= least) continue;
    least = apart;
    closest = {.time = time, .ticks = before + apart / 2};
  }
  return closest;
}

/// Measures for 20 us how many nanoseconds of the clock a tick of the counter takes. Returns 1 if the counter stands
/// still.
template <class ReadClock, class ReadCounter>
double measured_rate(const ReadClock& clock, const ReadCounter& counter) noexcept {
  const TickReading begin = read_both(clock, counter);
  while (clock() - begin.time < 20'000) {
  }
  const TickReading end = read_both(clock, counter);
  const std::int64_t ticks = end.ticks - begin.ticks;
  return ticks > 0 ? static_cast<double>(end.time - begin.time) / static_cast<double>(ticks) : 1;
}

/// The time of the processor's own counter. It is cheaper to read than the Clock, for spans of microseconds in which an
/// error of some percent does no harm. It may differ a little from core to core. A tick takes a third of a nanosecond
/// on some machines, 40 nanoseconds on others. If the processor's counter is unknown, it is the Clock.
struct Ticks {
  static constexpr std::int64_t forever = INT64_MAX;

  static std::int64_t now() noexcept {
    if constexpr (Processor::has_counter) return Processor::ticks();
    return Clock::now();
  }

  /// The number of ticks in so many nanoseconds.
  static std::int64_t in(std::int64_t nanoseconds) noexcept {
    return to_integer(static_cast<double>(nanoseconds) / rate());
  }

  /// The time that so many ticks take, in nanoseconds.
  static std::int64_t nanoseconds(std::int64_t ticks) noexcept {
    return to_integer(static_cast<double>(ticks) * rate());
  }

 private:
  static std::int64_t to_integer(double number) noexcept {
    return number < 9.2e18 ? static_cast<std::int64_t>(number) : forever;
  }

  /// Nanoseconds per tick.
  static double rate() noexcept {
    if constexpr (!Processor::has_counter) return 1;
    const std::uint64_t known = nanoseconds_per_tick.load(MemoryOrder::relaxed);
    return known != 0 ? __builtin_bit_cast(double, known) : find_rate();
  }

  [[gnu::noinline]] FANOUT_INLINE static double find_rate() noexcept;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/sync/ticks.ipp>
#endif
