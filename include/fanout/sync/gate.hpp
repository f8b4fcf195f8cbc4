// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout::inline v0 {

/// Many may be inside at once, or one who has closed it is alone. Entering an open gate is one compare-and-swap. Those
/// who were inside or had closed it when the process forked are gone in the child.
class Gate {
 public:
  /// Goes in; waits while the gate is closed.
  void enter() noexcept { enter_unless(closed); }

  /// Goes in from inside another gate: also while somebody waits to be alone in this one, and waits only for one who is.
  /// Otherwise two threads that each are inside of one gate and come to the other, and two that wait to be alone in
  /// these gates, would all wait for each other.
  void enter_from_inside_another() noexcept { enter_unless(closed | inside); }

  /// Leaves. The last one inside wakes who waits to be alone.
  void leave() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    do {
      // Whoever forked inside is not inside in the child, and has nothing to leave there.
      if ((seen >> 32U) != fork_epoch() || (seen & inside) == 0) return;
    } while (!word_.compare_exchange_weak(seen, seen - 1, MemoryOrder::acq_rel));
    if ((seen & closed) != 0 && (seen & inside) == 1) signal();
  }

  /// Closes the gate behind those inside, then waits until they have left.
  void close() noexcept {
    close([]() noexcept {});
  }

  /// The same, and calls `help()` before each time that it sleeps, for what those inside may need to leave. Who comes
  /// inside, or brings more to help with, calls remind() then.
  template <class Help>
  void close(const Help& help) noexcept {
    for (bool mine = false;;) {
      const std::uint32_t turn = turn_.load(MemoryOrder::acquire);
      std::uint64_t seen = current();
      if (!mine && (seen & closed) == 0) {
        mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::acquire);
      } else if (mine && (seen & inside) == 0) {
        return;
      } else {
        help();
        park(turn_, turn);
      }
    }
  }

  /// For one inside: lets who waits to be alone help again.
  void remind() noexcept {
    // A write, though of nothing: either it comes before the gate was closed, and who closed it sees what was done
    // before, or it sees that the gate is closed.
    if ((word_.fetch_add(0, MemoryOrder::acq_rel) & closed) != 0) signal();
  }

  /// Opens the gate that this thread closed, and wakes all who wait.
  void open() noexcept {
    word_.fetch_and(~closed, MemoryOrder::release);
    signal();
  }

 private:
  static constexpr std::uint64_t inside = 0x7fffffffU;
  static constexpr std::uint64_t closed = 0x80000000U;

  /// Waits while, of the bits of `mask`, only `closed` is set: the gate is closed, and nobody is inside if `mask` asks.
  void enter_unless(std::uint64_t mask) noexcept {
    for (;;) {
      const std::uint32_t turn = turn_.load(MemoryOrder::acquire);
      std::uint64_t seen = current();
      if ((seen & mask) != closed) {
        if (word_.compare_exchange_weak(seen, seen + 1, MemoryOrder::acquire)) return;
      } else {
        park(turn_, turn);
      }
    }
  }

  /// The word as it counts in this process: what was inside before a fork is not.
  std::uint64_t current() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    const std::uint64_t epoch = std::uint64_t{fork_epoch()} << 32U;
    while ((seen & ~std::uint64_t{0xffffffffU}) != epoch) {
      if (word_.compare_exchange_weak(seen, epoch, MemoryOrder::acquire)) return epoch;
    }
    return seen;
  }

  void signal() noexcept {
    turn_.fetch_add(1, MemoryOrder::release);
    unpark_all(turn_);
  }

  Atomic<std::uint64_t> word_{std::uint64_t{fork_epoch()} << 32U};
  Atomic<std::uint32_t> turn_{0};
};

/// Is inside a gate for as long as it lives.
class EnteredGate {
 public:
  EnteredGate(Gate& gate, bool from_inside_another) noexcept : gate_(gate) {
    if (from_inside_another) {
      gate_.enter_from_inside_another();
    } else {
      gate_.enter();
    }
  }
  EnteredGate(const EnteredGate&) = delete;
  EnteredGate& operator=(const EnteredGate&) = delete;
  ~EnteredGate() { gate_.leave(); }

 private:
  Gate& gate_;
};

/// Keeps a gate closed for as long as it lives. If its own thread forks, the gate is open in the child, and may have
/// been closed by another thread before this ends.
class ClosedGate {
 public:
  explicit ClosedGate(Gate& gate) noexcept : ClosedGate(gate, []() noexcept {}) {}
  template <class Help>
  ClosedGate(Gate& gate, const Help& help) noexcept : gate_(gate), epoch_(fork_epoch()) {
    gate_.close(help);
  }
  ClosedGate(const ClosedGate&) = delete;
  ClosedGate& operator=(const ClosedGate&) = delete;
  ~ClosedGate() {
    if (epoch_ == fork_epoch()) gate_.open();
  }

 private:
  Gate& gate_;
  std::uint32_t epoch_;
};

}  // namespace fanout::inline v0
