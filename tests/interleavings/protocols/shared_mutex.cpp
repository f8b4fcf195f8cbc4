// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/shared_mutex.hpp>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::Atomic;
using fanout::detail::ExclusiveLock;
using fanout::detail::MemoryOrder;
using fanout::detail::SharedLock;
using fanout::detail::SharedMutex;

void one_closes() {
  SharedMutex mutex;
  Plain<int> first(0);
  Plain<int> second(0);
  run(
      [&] {
        const SharedLock inside(mutex, false);
        first.set(first.get() + 1);
      },
      [&] {
        const SharedLock inside(mutex, false);
        second.set(second.get() + 1);
      },
      [&] {
        const ExclusiveLock alone(mutex);
        first.set(first.get() + 10);
        second.set(second.get() + 10);
      });
  check(first.get() == 11 && second.get() == 11, "each thread has been inside once");
}

void two_close() {
  SharedMutex mutex;
  Plain<int> count(0);
  const auto alone = [&] {
    const ExclusiveLock closed(mutex);
    count.set(count.get() + 1);
  };
  run(alone, alone);
  check(count.get() == 2, "each thread was alone once");
}

void one_comes_again() {
  SharedMutex mutex;
  Plain<int> count(0);
  run(
      [&] {
        for (int i = 0; i < 2; ++i) {
          const SharedLock inside(mutex, false);
          static_cast<void>(count.get());
        }
      },
      [&] {
        const ExclusiveLock closed(mutex);
        count.set(count.get() + 1);
      });
  check(count.get() == 1, "it was closed once");
}

/// A thread that holds a shared lock of one mutex takes one of another whose exclusive lock is wanted.
void two_mutexes() {
  SharedMutex here;
  SharedMutex there;
  Plain<int> count(0);
  run(
      [&] {
        const SharedLock inside(here, false);
        const SharedLock within(there, true);
        static_cast<void>(count.get());
      },
      [&] {
        const ExclusiveLock closed(there);
        count.set(count.get() + 1);
      });
  check(count.get() == 1, "it was closed once");
}

/// The thread inside leaves only after the closing thread has helped it.
void one_helps() {
  SharedMutex mutex;
  Atomic<bool> wants(false);
  Atomic<bool> helped(false);
  run(
      [&] {
        mutex.lock_shared();
        wants.store(true, MemoryOrder::relaxed);
        mutex.remind();
        while (!helped.load(MemoryOrder::acquire)) fanout::detail::park(helped, false);
        mutex.unlock_shared();
      },
      [&] {
        const auto help = [&]() noexcept {
          if (!wants.load(MemoryOrder::relaxed)) return;
          helped.store(true, MemoryOrder::release);
          fanout::detail::unpark_all(helped);
        };
        mutex.lock(help);
        // The other thread may enter later, when help() is not called any more.
        helped.store(true, MemoryOrder::release);
        fanout::detail::unpark_all(helped);
        mutex.unlock();
      });
}

}  // namespace

Protocol shared_mutex() {
  using enum Fault::How;
  return {
      "shared_mutex",
      {{"one closes", one_closes, {.preemptions = 2}},
       {"two close", two_close},
       {"one comes again", one_comes_again},
       {"two mutexes", two_mutexes},
       {"one helps", one_helps}},
      {
          {"sync/shared_mutex.hpp", "!word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)", torn,
           "one closes"},
          {"sync/shared_mutex.hpp", "!word_.compare_exchange_strong(seen, seen + one, MemoryOrder::acquire)", relaxed,
           "one closes"},
          {"sync/shared_mutex.hpp", "const std::uint32_t left = left_.load(MemoryOrder::acquire)", relaxed,
           "one closes"},
          {"sync/shared_mutex.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", acq_rel, "one closes"},
          {"sync/shared_mutex.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", late, "one closes"},
          {"sync/shared_mutex.hpp", "left_.fetch_add(1, MemoryOrder::seq_cst)", torn, "one closes"},
          {"sync/shared_mutex.hpp", "(word_.load(MemoryOrder::seq_cst) & closed) != 0) tell_if_last()", acq_rel,
           "one closes"},
          {"sync/shared_mutex.hpp", "mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst)",
           acq_rel, "one closes"},
          {"sync/shared_mutex.hpp", "mine = word_.compare_exchange_weak(seen, seen | closed, MemoryOrder::seq_cst)",
           torn, "one closes"},
          {"sync/shared_mutex.hpp", "mine && entered(seen) == left_.load(MemoryOrder::seq_cst)", acq_rel, "one closes"},
          {"sync/shared_mutex.hpp", "mine && entered(seen) == left_.load(MemoryOrder::seq_cst)", relaxed, "one closes"},
          {"sync/shared_mutex.hpp", "word_.compare_exchange_weak(seen, seen | alone, MemoryOrder::acq_rel)) return",
           torn, "two mutexes"},
          {"sync/shared_mutex.hpp", "word_.fetch_add(0, MemoryOrder::acq_rel)", relaxed, "one helps"},
          {"sync/shared_mutex.hpp", "word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release)", relaxed,
           "one closes"},
          {"sync/shared_mutex.hpp", "word_.fetch_and(~std::uint64_t{closed | alone}, MemoryOrder::release)", late,
           "one closes"},
          {"sync/shared_mutex.hpp", "turn = turn_.load(MemoryOrder::acquire)", relaxed, "two close", 1, 2},
          {"sync/shared_mutex.hpp", "turn = turn_.load(MemoryOrder::acquire)", relaxed, "one closes", 2, 2},
          {"sync/shared_mutex.hpp", "turn_.fetch_add(1, MemoryOrder::release)", relaxed, "one closes"},
          {"sync/shared_mutex.hpp", "turn_.fetch_add(1, MemoryOrder::release)", skipped, "one closes"},
          {"sync/shared_mutex.hpp", "turn_.fetch_add(1, MemoryOrder::release)", late, "one closes"},
          {"sync/shared_mutex.hpp", " unpark_all(turn_)", skipped, "one closes"},
      }};
}

}  // namespace interleavings
