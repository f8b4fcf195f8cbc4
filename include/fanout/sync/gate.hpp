// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_epoch.hpp>
#include <fanout/sync/futex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Many may be inside at once, or one who has closed it is alone. Entering an open gate is one compare-and-swap, which
/// also counts who comes in; leaving is one addition. Those who were inside or had closed it when the process forked are
/// gone in the child.
class Gate {
 public:
  /// Goes in; waits while the gate is closed. Returns how many have come in before, as a counter that wraps around.
  std::uint32_t enter() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if (static_cast<std::uint32_t>(seen) != now() ||
        !word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)) {
      return enter_unless(closed);
    }
    return entered(seen);
  }

  /// Goes in from inside another gate, or from inside this one: also while somebody waits to be alone in this one, and
  /// waits only for one who is. Otherwise two threads that each are inside of one gate and come to the other, and two
  /// that wait to be alone in these gates, would all wait for each other.
  std::uint32_t enter_from_inside_another() noexcept { return enter_unless(alone); }

  /// Leaves. The last one inside wakes who waits to be alone.
  void leave() noexcept {
    // Whoever forked inside is not inside in the child, and has nothing to leave there. This is read before the word:
    // between the two others may come and go.
    const std::uint32_t left = left_.load(MemoryOrder::acquire);
    const std::uint64_t seen = word_.load(MemoryOrder::relaxed);
    if ((static_cast<std::uint32_t>(seen) & ~closed) != now() || entered(seen) == left) return;
    // First the addition and then the look at the word, and who closes does it the other way round: one of them notices
    // that nobody is inside.
    left_.fetch_add(1, MemoryOrder::seq_cst);
    if ((word_.load(MemoryOrder::seq_cst) & closed) != 0) tell_if_last();
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
        mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst);
      } else if (mine && entered(seen) == left_.load(MemoryOrder::seq_cst)) {
        // It fails where somebody came in from inside another gate meanwhile.
        if (word_.compare_exchange_weak(seen, seen | alone, MemoryOrder::acq_rel)) return;
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
    word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release);
    signal();
  }

 private:
  // The word, from its lowest bit: whether somebody wants to be alone, whether he is, the fork epoch, and how many have
  // entered. While nobody wants to be alone its lower half is now().
  static constexpr std::uint32_t closed = 1;
  static constexpr std::uint32_t alone = 2;
  static constexpr std::uint64_t one = std::uint64_t{1} << 32U;

  static std::uint32_t now() noexcept { return fork_epoch() << 2U; }
  static std::uint32_t entered(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word >> 32U); }

  /// Waits while one of these bits is set.
  [[gnu::noinline]] std::uint32_t enter_unless(std::uint32_t bits) noexcept {
    for (;;) {
      const std::uint32_t turn = turn_.load(MemoryOrder::acquire);
      std::uint64_t seen = current();
      if ((seen & bits) == 0) {
        if (word_.compare_exchange_weak(seen, seen + one, MemoryOrder::acquire)) return entered(seen);
      } else {
        park(turn_, turn);
      }
    }
  }

  /// The word as it counts in this process: what was inside before a fork is not.
  std::uint64_t current() noexcept {
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    while ((static_cast<std::uint32_t>(seen) & ~(closed | alone)) != now()) {
      const std::uint64_t kept = seen >> 32U << 32U;
      if (!word_.compare_exchange_weak(seen, kept | now() | closed | alone, MemoryOrder::acquire)) continue;
      // Alone for a moment, in which all who were inside have left.
      left_.store(entered(kept), MemoryOrder::relaxed);
      open();
      seen = word_.load(MemoryOrder::acquire);
    }
    return seen;
  }

  [[gnu::noinline]] void tell_if_last() noexcept {
    if (entered(word_.load(MemoryOrder::seq_cst)) == left_.load(MemoryOrder::seq_cst)) signal();
  }

  void signal() noexcept {
    turn_.fetch_add(1, MemoryOrder::release);
    unpark_all(turn_);
  }

  Atomic<std::uint64_t> word_{now()};
  Atomic<std::uint32_t> left_{0};  // how many have left
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

}}}  // namespace fanout::v0::detail
