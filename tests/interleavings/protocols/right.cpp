// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/sync/right.hpp>

#include "protocol.hpp"

namespace interleavings {

namespace {

using fanout::detail::HeldRight;
using fanout::detail::Right;

void two_take_it() {
  Right right;
  Plain<int> count(0);
  const auto body = [&] {
    const HeldRight held(right);
    count.set(count.get() + 1);
  };
  run(body, body);
  check(count.get() == 2, "each thread has held the right once");
}

void three_take_it() {
  Right right;
  Plain<int> count(0);
  const auto body = [&] {
    const HeldRight held(right);
    count.set(count.get() + 1);
  };
  run(body, body, body);
  check(count.get() == 3, "each thread has held the right once");
}

void one_tries() {
  Right right;
  Plain<int> count(0);
  bool taken = false;
  const auto tries = [&] {
    taken = right.try_take();
    if (!taken) return;
    count.set(count.get() + 1);
    right.give();
  };
  const auto takes = [&] {
    for (int i = 0; i < 2; ++i) {
      const HeldRight held(right);
      count.set(count.get() + 1);
    }
  };
  run(tries, takes);
  check(count.get() == (taken ? 3 : 2), "each holder has counted once");
}

}  // namespace

Protocol right() {
  using enum Fault::How;
  return {
      "right",
      {{"two take it", two_take_it}, {"three take it", three_take_it}, {"one tries", one_tries}},
      {
          {"sync/right.hpp", "word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)", relaxed,
           "two take it"},
          {"sync/right.hpp", "word_.compare_exchange_weak(seen, now() | as, MemoryOrder::acquire)", torn,
           "two take it"},
          {"sync/right.hpp", "word_.compare_exchange_strong(seen, wanted, MemoryOrder::relaxed)", torn, "two take it"},
          {"sync/right.hpp", "word_.exchange(now() | free, MemoryOrder::release)", relaxed, "two take it"},
          {"sync/right.hpp", "word_.exchange(now() | free, MemoryOrder::release)", torn, "two take it"},
          {"sync/right.hpp", " unpark_all(word_)", skipped, "two take it"},
          {"sync/right.hpp", " park(word_, wanted)", unchecked, "two take it"},
      }};
}

}  // namespace interleavings
