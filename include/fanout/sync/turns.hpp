// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Lets threads go one after the other, in the order of the tickets that they drew. Whoever waits, waits for those with
/// earlier tickets; so a ticket is drawn only for what is sure to come to its turn.
class Turns {
 public:
  /// The next ticket. One thread at a time draws.
  std::uint32_t draw() noexcept { return drawn_++; }
  /// How many were drawn: the ticket that is drawn next. Not to be read while another thread draws.
  std::uint32_t drawn() const noexcept { return drawn_; }

  /// Waits until all with earlier tickets have passed. Does not end where one of them stayed in the parent of a fork.
  void await(std::uint32_t ticket) noexcept {
    for (;;) {
      std::uint32_t seen = passed_.load(MemoryOrder::acquire);
      // As counters that wrap around: it is past if the distance is in the lower half.
      if (((seen >> 1U) - ticket) % counts < counts / 2) return;
      const std::uint32_t marked = seen | awaited;
      if (seen == marked || passed_.compare_exchange_strong(seen, marked, MemoryOrder::acquire)) {
        park(passed_, marked);
      }
    }
  }

  /// Says that the turn of this ticket has ended, and wakes those who wait.
  void pass(std::uint32_t ticket) noexcept {
    if ((passed_.exchange((ticket + 1) << 1U, MemoryOrder::acq_rel) & awaited) != 0) unpark_all(passed_);
  }

  /// Forgets all who have not come to their turn. Nobody waits then.
  void forget() noexcept { passed_.store(drawn_ << 1U, MemoryOrder::relaxed); }

 private:
  static constexpr std::uint32_t awaited = 1;
  static constexpr std::uint32_t counts = 0x80000000U;  // the word holds a counter and the mark

  Atomic<std::uint32_t> passed_{0};
  std::uint32_t drawn_ = 0;
};

}}}  // namespace fanout::v0::detail
