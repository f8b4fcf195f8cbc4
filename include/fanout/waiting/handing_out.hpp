// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/ticks.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What calls of a model cost besides the shard that the caller runs, in Ticks: when they hand shards out to threads
/// that are awake, and when they keep them all. Learnt from calls of either kind; what is known of the other kind fades
/// meanwhile, so that it is tried again. From any thread; of two notes at the same time one may be lost.
class HandingOut {
 public:
  /// What handing out costs before any was seen, in nanoseconds: a cache line that travels from core to core and back,
  /// and what stands around it.
  static constexpr std::int64_t at_first = 300;

  /// Whether a call with so many shards that take so long each is over sooner if it hands them out.
  bool is_worth(std::int64_t body, std::size_t shards) const noexcept {
    const std::uint64_t seen = seen_.load(MemoryOrder::relaxed);
    return handed_out(seen) < kept(seen) + body * static_cast<std::int64_t>(shards - 1);
  }

  /// A call that handed shards out took so much longer than its own shard. Noted as 7 us at most: more is not what
  /// handing out costs, but that shards differ, or that threads had to stand back.
  void note_handed_out(std::int64_t more) noexcept {
    const std::uint64_t last = last_.load(MemoryOrder::relaxed);
    const std::int64_t noted = clamped(more, 24 * first_);
    last_.store(both(noted, kept(last)), MemoryOrder::relaxed);
    const std::int64_t kept_now = faded<256>(kept(seen_.load(MemoryOrder::relaxed)), 0);
    seen_.store(both(smaller(noted, handed_out(last)), kept_now), MemoryOrder::relaxed);
  }

  /// A call that kept all shards took so much longer than if each had taken as long as its own one. Not told of all such
  /// calls, so what handing out costs fades faster.
  void note_kept(std::int64_t more) noexcept {
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

  /// By such a part of how far it is away, at least by one tick.
  template <std::int64_t Part>
  static std::int64_t faded(std::int64_t before, std::int64_t to) noexcept {
    return before > to ? before - (before - to + Part - 1) / Part : before;
  }

  const std::int64_t first_ = Ticks::in(at_first);
  // Each two in one word. What is seen is the smaller of the last two: a thread seldom has to stand back twice in a row.
  Atomic<std::uint64_t> seen_{both(first_, 0)};
  Atomic<std::uint64_t> last_{both(first_, 0)};
};

}}}  // namespace fanout::v0::detail
