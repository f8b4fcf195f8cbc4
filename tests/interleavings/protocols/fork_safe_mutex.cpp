// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/fork_safe_mutex.hpp>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::ForkSafeLock;
using fanout::detail::ForkSafeMutex;

void two_take_it() {
  ForkSafeMutex mutex;
  Plain<int> count(0);
  const auto body = [&] {
    const ForkSafeLock held(mutex);
    count.set(count.get() + 1);
  };
  run(body, body);
  check(count.get() == 2, "each thread has held the right once");
}

void three_take_it() {
  ForkSafeMutex mutex;
  Plain<int> count(0);
  const auto body = [&] {
    const ForkSafeLock held(mutex);
    count.set(count.get() + 1);
  };
  run(body, body, body);
  check(count.get() == 3, "each thread has held the right once");
}

void one_tries() {
  ForkSafeMutex mutex;
  Plain<int> count(0);
  bool taken = false;
  const auto tries = [&] {
    taken = mutex.try_lock();
    if (!taken) return;
    count.set(count.get() + 1);
    mutex.unlock();
  };
  const auto takes = [&] {
    for (int i = 0; i < 2; ++i) {
      const ForkSafeLock held(mutex);
      count.set(count.get() + 1);
    }
  };
  run(tries, takes);
  check(count.get() == (taken ? 3 : 2), "each holder has counted once");
}

}  // namespace

Protocol fork_safe_mutex() {
  using enum Fault::How;
  return {
      "fork_safe_mutex",
      {{"two take it", two_take_it}, {"three take it", three_take_it}, {"one tries", one_tries}},
      {
          {"sync/fork_safe_mutex.hpp", "word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)", relaxed,
           "two take it"},
          {"sync/fork_safe_mutex.hpp", "word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)", torn,
           "two take it"},
          {"sync/fork_safe_mutex.hpp", "word_.compare_exchange_strong(seen, wanted, MemoryOrder::relaxed)", torn,
           "two take it"},
          {"sync/fork_safe_mutex.hpp", "word_.exchange(now() | free, MemoryOrder::release)", relaxed, "two take it"},
          {"sync/fork_safe_mutex.hpp", "word_.exchange(now() | free, MemoryOrder::release)", torn, "two take it"},
          {"sync/fork_safe_mutex.hpp", " unpark_all(word_)", skipped, "two take it"},
          {"sync/fork_safe_mutex.hpp", " park(word_, wanted)", unchecked, "two take it"},
      }};
}

}  // namespace interleavings
