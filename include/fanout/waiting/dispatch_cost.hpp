// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Estimates the overhead of calls of a model, in Ticks: of calls that dispatch shards to threads that are awake, and
/// of calls that run all shards inline. Each call updates the estimate of its kind. The estimate of the other kind
/// decays, so that it is tried again. Thread-safe; of two notes at the same time one may be lost.
class DispatchCost {
 public:
  /// The first estimate of the dispatch cost, in nanoseconds: a cache line moves from core to core and back.
  static constexpr std::int64_t at_first = 300;

  /// True if dispatching `shards` shards of `body` ticks each takes less time than running them inline.
  bool is_worth(std::int64_t body, std::size_t shards) const noexcept {
    const std::uint64_t seen = seen_.load(MemoryOrder::relaxed);
    return handed_out(seen) < kept(seen) + body * static_cast<std::int64_t>(shards - 1);
  }

  /// Notes that a call that dispatched its shards took so much longer than its own shard. Counted as 7 us at most: a
  /// longer time comes from shards that differ or from preempted threads.
  void note_dispatched(std::int64_t more) noexcept {
    const std::uint64_t last = last_.load(MemoryOrder::relaxed);
    const std::int64_t noted = clamped(more, 24 * first_);
    last_.store(both(noted, kept(last)), MemoryOrder::relaxed);
    const std::int64_t kept_now = faded<256>(kept(seen_.load(MemoryOrder::relaxed)), 0);
    seen_.store(both(smaller(noted, handed_out(last)), kept_now), MemoryOrder::relaxed);
  }

  /// Notes that a call that ran all shards inline took so much longer than `shards` times its first one. Only some of
  /// these calls are noted, so the dispatch cost decays faster here.
  void note_inline(std::int64_t more) noexcept {
    const std::uint64_t last = last_.load(MemoryOrder::relaxed);
    const std::int64_t noted = clamped(more, INT32_MAX);
    last_.store(both(handed_out(last), noted), MemoryOrder::relaxed);
    const std::int64_t handed_out_now = faded<16>(handed_out(seen_.load(MemoryOrder::relaxed)), first_);
    seen_.store(both(handed_out_now, smaller(noted, kept(last))), MemoryOrder::relaxed);
  }

 private:
  static std::int64_t handed_out(std::uint64_t word) noexcept { return static_cast<std::int64_t>(word >> 32U); }
  static std::int64_t kept(std::uint64_t word) noexcept { return static_cast<std::int64_t>(word & 0xffffffffU); }
  static std::uint64_t both(std::int64_t handed_out, std::int64_t kept) noexcept {
    return static_cast<std::uint64_t>(handed_out) << 32U | static_cast<std::uint64_t>(kept);
  }

  static std::int64_t smaller(std::int64_t a, std::int64_t b) noexcept { return a < b ? a : b; }
  static std::int64_t clamped(std::int64_t x, std::int64_t most) noexcept { return x < 0 ? 0 : smaller(x, most); }

  /// Moves `before` 1/Part of the way down to `to`, by at least one tick.
  template <std::int64_t Part>
  static std::int64_t faded(std::int64_t before, std::int64_t to) noexcept {
    return before > to ? before - (before - to + Part - 1) / Part : before;
  }

  const std::int64_t first_ = Ticks::in(at_first);
  // Two estimates in each word. seen_ has the smaller of the last two notes: a thread is seldom preempted twice in a
  // row.
  Atomic<std::uint64_t> seen_{both(first_, 0)};
  Atomic<std::uint64_t> last_{both(first_, 0)};
};

}}}  // namespace fanout::v0::detail
