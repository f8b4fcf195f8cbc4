// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The right to something that one thread at a time may have: a device, a replica with state. Taking a free one is one
/// compare-and-swap. A right held when the process forked, by whatever thread, is free in the child.
class Right {
 public:
  /// Takes the right if it is free. Does not wait.
  bool try_take() noexcept { return take_free(held); }

  /// Takes the right, waiting for it if another thread has it.
  void take() noexcept {
    if (take_free(held)) return;
    // Most are held for less than a microsecond, in which no thread falls asleep and wakes.
    for (int turn = 0; turn < 64; ++turn) {
      pause();
      if (take_free(held)) return;
    }
    // From here on the word says that someone may sleep, so that give() wakes; the one who takes it keeps saying so,
    // since others may sleep still.
    while (!take_free(held_and_wanted)) {
      std::uint32_t seen = word_.load(MemoryOrder::relaxed);
      const std::uint32_t wanted = now() | held_and_wanted;
      if (seen == (now() | held) && word_.compare_exchange_strong(seen, wanted, MemoryOrder::relaxed)) {
        seen = wanted;
      }
      if (seen == wanted) park(word_, wanted);
    }
  }

  /// Gives the right back and wakes those who wait for it.
  void give() noexcept {
    if ((word_.exchange(now() | free, MemoryOrder::release) & 3U) == held_and_wanted) unpark_all(word_);
  }

 private:
  static constexpr std::uint32_t free = 0;
  static constexpr std::uint32_t held = 1;
  static constexpr std::uint32_t held_and_wanted = 2;

  static std::uint32_t now() noexcept { return fork_epoch() << 2U; }

  bool take_free(std::uint32_t as) noexcept {
    std::uint32_t seen = word_.load(MemoryOrder::relaxed);
    while ((seen & 3U) == free || (seen & ~3U) != now()) {
      if (word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)) {
        return true;
      }
    }
    return false;
  }

  Atomic<std::uint32_t> word_{free};
};

/// Holds a right for as long as it lives. If its own thread forks, the child does not have the right: it is free there,
/// and may have been taken by another thread before this ends.
class HeldRight {
 public:
  explicit HeldRight(Right& right) noexcept : right_(right), epoch_(fork_epoch()) { right_.take(); }
  HeldRight(const HeldRight&) = delete;
  HeldRight& operator=(const HeldRight&) = delete;
  ~HeldRight() {
    if (epoch_ == fork_epoch()) right_.give();
  }

 private:
  Right& right_;
  std::uint32_t epoch_;
};

}}}  // namespace fanout::v0::detail
