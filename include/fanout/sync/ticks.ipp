// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/sync/ticks.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

double Ticks::find_rate() noexcept {
  const std::uint64_t frequency = Processor::frequency();
  const double found =
      frequency != 0 ? 1e9 / static_cast<double>(frequency) : measured_rate(&Clock::now, &Processor::ticks);
  nanoseconds_per_tick.store(__builtin_bit_cast(std::uint64_t, found), MemoryOrder::relaxed);
  return found;
}

}}}  // namespace fanout::v0::detail
