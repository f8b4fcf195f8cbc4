// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
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

TEST_CASE("a higher dispatch cost is learnt only at its second note in a row") {
  DispatchCost cost;
  cost.note_dispatched(5 * microsecond);
  CHECK(cost.is_worth(microsecond, 2));
  cost.note_dispatched(4 * microsecond);
  CHECK_FALSE(cost.is_worth(3 * microsecond, 2));
  CHECK(cost.is_worth(5 * microsecond, 2));
  cost.note_dispatched(microsecond / 2);
  CHECK(cost.is_worth(microsecond, 2));
}

TEST_CASE("an outlier from uneven shards or a preempted thread is limited in the dispatch cost") {
  DispatchCost cost;
  for (int i = 0; i < 10; ++i) cost.note_dispatched(Ticks::in(1'000'000'000));
  CHECK(cost.is_worth(10 * microsecond, 2));
  CHECK_FALSE(cost.is_worth(5 * microsecond, 2));
}

TEST_CASE("inline calls try dispatching again from time to time, and dispatched calls inline") {
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

TEST_CASE("negative times, from cores with different counters, count as zero") {
  DispatchCost cost;
  for (int i = 0; i < 2; ++i) cost.note_dispatched(-50);
  CHECK(cost.is_worth(1, 2));
  for (int i = 0; i < 2; ++i) cost.note_inline(-50);
  CHECK(cost.is_worth(1, 2));
}
