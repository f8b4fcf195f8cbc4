// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/gate.hpp>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::Atomic;
using fanout::detail::ClosedGate;
using fanout::detail::EnteredGate;
using fanout::detail::Gate;
using fanout::detail::MemoryOrder;

void one_closes() {
  Gate gate;
  Plain<int> first(0);
  Plain<int> second(0);
  run(
      [&] {
        const EnteredGate inside(gate, false);
        first.set(first.get() + 1);
      },
      [&] {
        const EnteredGate inside(gate, false);
        second.set(second.get() + 1);
      },
      [&] {
        const ClosedGate alone(gate);
        first.set(first.get() + 10);
        second.set(second.get() + 10);
      });
  check(first.get() == 11 && second.get() == 11, "each thread has been inside once");
}

void two_close() {
  Gate gate;
  Plain<int> count(0);
  const auto alone = [&] {
    const ClosedGate closed(gate);
    count.set(count.get() + 1);
  };
  run(alone, alone);
  check(count.get() == 2, "each thread was alone once");
}

void one_comes_again() {
  Gate gate;
  Plain<int> count(0);
  run(
      [&] {
        for (int i = 0; i < 2; ++i) {
          const EnteredGate inside(gate, false);
          static_cast<void>(count.get());
        }
      },
      [&] {
        const ClosedGate closed(gate);
        count.set(count.get() + 1);
      });
  check(count.get() == 1, "it was closed once");
}

/// A thread inside one gate enters another one that is being closed.
void two_gates() {
  Gate here;
  Gate there;
  Plain<int> count(0);
  run(
      [&] {
        const EnteredGate inside(here, false);
        const EnteredGate within(there, true);
        static_cast<void>(count.get());
      },
      [&] {
        const ClosedGate closed(there);
        count.set(count.get() + 1);
      });
  check(count.get() == 1, "it was closed once");
}

/// The thread inside leaves only after the closing thread has helped it.
void one_helps() {
  Gate gate;
  Atomic<bool> wants(false);
  Atomic<bool> helped(false);
  run(
      [&] {
        gate.enter();
        wants.store(true, MemoryOrder::relaxed);
        gate.remind();
        while (!helped.load(MemoryOrder::acquire)) fanout::detail::park(helped, false);
        gate.leave();
      },
      [&] {
        const auto help = [&]() noexcept {
          if (!wants.load(MemoryOrder::relaxed)) return;
          helped.store(true, MemoryOrder::release);
          fanout::detail::unpark_all(helped);
        };
        gate.close(help);
        // The other thread may enter later, when help() is not called any more.
        helped.store(true, MemoryOrder::release);
        fanout::detail::unpark_all(helped);
        gate.open();
      });
}

}  // namespace

Protocol gate() {
  using enum Fault::How;
  return {
      "gate",
      {{"one closes", one_closes, {.preemptions = 2}},
       {"two close", two_close},
       {"one comes again", one_comes_again},
       {"two gates", two_gates},
       {"one helps", one_helps}},
      {
          {"sync/gate.hpp", "!word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)", torn,
           "one closes"},
          {"sync/gate.hpp", "!word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)", relaxed,
           "one closes"},
          {"sync/gate.hpp", "const std::uint32_t left = left_.load(MemoryOrder::acquire)", relaxed, "one closes"},
          {"sync/gate.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", acq_rel, "one closes"},
          {"sync/gate.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", late, "one closes"},
          {"sync/gate.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", torn, "one closes"},
          {"sync/gate.hpp", "(word_.load(MemoryOrder::seq_cst) & closed) != 0) tell_if_last()", acq_rel, "one closes"},
          {"sync/gate.hpp", "mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst)", acq_rel,
           "one closes"},
          {"sync/gate.hpp", "mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst)", torn,
           "one closes"},
          {"sync/gate.hpp", "mine && entered(seen) == left_.load(MemoryOrder::seq_cst)", acq_rel, "one closes"},
          {"sync/gate.hpp", "mine && entered(seen) == left_.load(MemoryOrder::seq_cst)", relaxed, "one closes"},
          {"sync/gate.hpp", "word_.compare_exchange_weak(seen, seen | alone, MemoryOrder::acq_rel)) return", torn,
           "two gates"},
          {"sync/gate.hpp", "word_.fetch_add(0, MemoryOrder::acq_rel)", relaxed, "one helps"},
          {"sync/gate.hpp", "word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release)", relaxed,
           "one closes"},
          {"sync/gate.hpp", "word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release)", late,
           "one closes"},
          {"sync/gate.hpp", "turn = turn_.load(MemoryOrder::acquire)", relaxed, "two close", 1, 2},
          {"sync/gate.hpp", "turn = turn_.load(MemoryOrder::acquire)", relaxed, "one closes", 2, 2},
          {"sync/gate.hpp", "turn_.fetch_add(1, MemoryOrder::release)", relaxed, "one closes"},
          {"sync/gate.hpp", "turn_.fetch_add(1, MemoryOrder::release)", skipped, "one closes"},
          {"sync/gate.hpp", "turn_.fetch_add(1, MemoryOrder::release)", late, "one closes"},
          {"sync/gate.hpp", " unpark_all(turn_)", skipped, "one closes"},
      }};
}

}  // namespace interleavings
