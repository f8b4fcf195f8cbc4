// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/waiting/dispatch_cost.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using fanout::detail::DispatchCost;
using fanout::detail::Ticks;

namespace {

const std::int64_t microsecond = Ticks::in(1'000);

}  // namespace

TEST_CASE("before the first note, a body is dispatched if it takes longer than a cache line's way there and back") {
  const DispatchCost cost;
  CHECK_FALSE(cost.is_worth(Ticks::in(DispatchCost::at_first) / 2, 2));
  CHECK(cost.is_worth(Ticks::in(DispatchCost::at_first) + 1, 2));
  CHECK(cost.is_worth(Ticks::in(DispatchCost::at_first) / 2, 4));  // of four shards three are saved
}

TEST_CASE("what handing out took twice in a row is learnt at once, and what it took once is not") {
  DispatchCost cost;
  cost.note_dispatched(5 * microsecond);
  CHECK(cost.is_worth(microsecond, 2));
  cost.note_dispatched(4 * microsecond);
  CHECK_FALSE(cost.is_worth(3 * microsecond, 2));
  CHECK(cost.is_worth(5 * microsecond, 2));
  cost.note_dispatched(microsecond / 2);
  CHECK(cost.is_worth(microsecond, 2));
}

TEST_CASE("shards that differ, or a thread that stood back, are not what handing out costs") {
  DispatchCost cost;
  for (int i = 0; i < 10; ++i) cost.note_dispatched(Ticks::in(1'000'000'000));
  CHECK(cost.is_worth(10 * microsecond, 2));
  CHECK_FALSE(cost.is_worth(5 * microsecond, 2));
}

TEST_CASE("while shards are kept, handing them out is tried again by and by, and the other way round") {
  DispatchCost cost;
  for (int i = 0; i < 2; ++i) cost.note_dispatched(5 * microsecond);
  int kept = 0;
  while (!cost.is_worth(2 * microsecond, 2)) {
    cost.note_inline(0);
    REQUIRE(++kept < 200);
  }
  CHECK(kept > 3);

  DispatchCost uneven;  // the others take so much longer than the caller's own
  for (int i = 0; i < 2; ++i) uneven.note_inline(10 * microsecond);
  CHECK(uneven.is_worth(0, 2));
  for (int i = 0; i < 5000; ++i) uneven.note_dispatched(microsecond);
  CHECK_FALSE(uneven.is_worth(0, 2));
}

TEST_CASE("times below zero, of cores whose counters differ, are none") {
  DispatchCost cost;
  for (int i = 0; i < 2; ++i) cost.note_dispatched(-50);
  CHECK(cost.is_worth(1, 2));
  for (int i = 0; i < 2; ++i) cost.note_inline(-50);
  CHECK(cost.is_worth(1, 2));
}
