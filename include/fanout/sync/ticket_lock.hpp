// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A ticket lock: threads get their turns in the order of their tickets. Each ticket must be passed, or those with
/// later tickets wait forever.
class TicketLock {
 public:
  /// Returns the next ticket. Only one thread at a time may call it.
  std::uint32_t draw() noexcept { return drawn_++; }
  /// The ticket that draw() returns next. Must not be called while another thread draws.
  std::uint32_t drawn() const noexcept { return drawn_; }

  /// Waits until all earlier tickets have been passed. Waits forever if one of them belongs to a thread that a fork
  /// left in the parent.
  void await(std::uint32_t ticket) noexcept {
    for (;;) {
      std::uint32_t seen = passed_.load(MemoryOrder::acquire);
      // The counters wrap around: a ticket has been passed if the distance is in the lower half.
      if (((seen >> 1U) - ticket) % counts < counts / 2) return;
      const std::uint32_t marked = seen | awaited;
      if (seen == marked || passed_.compare_exchange_strong(seen, marked, MemoryOrder::acquire)) {
        park(passed_, marked);
      }
    }
  }

  /// Ends the turn of this ticket, and wakes the threads that wait.
  void pass(std::uint32_t ticket) noexcept {
    if ((passed_.exchange((ticket + 1) << 1U, MemoryOrder::acq_rel) & awaited) != 0) unpark_all(passed_);
  }

  /// Passes all tickets that were drawn. No thread may be waiting.
  void forget() noexcept { passed_.store(drawn_ << 1U, MemoryOrder::relaxed); }

 private:
  static constexpr std::uint32_t awaited = 1;
  static constexpr std::uint32_t counts = 0x80000000U;  // the word holds a counter and the mark

  Atomic<std::uint32_t> passed_{0};
  std::uint32_t drawn_ = 0;
};

}}}  // namespace fanout::v0::detail
