// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/recovery/memory_limits.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include <fanout/plan/dealt_split.hpp>
#include <fanout/plan/even_split.hpp>

using fanout::EvenSplit;
using fanout::Plan;
using fanout::Shard;
using Limits = fanout::detail::MemoryLimits;

TEST_CASE("a shard that does not fit is cut into as few equal parts as fit, on the same device") {
  Limits limits;
  CHECK(limits.most(1, 0) == Limits::none);
  CHECK(limits.applied_to(EvenSplit{}(10, 2), 1) == EvenSplit{}(10, 2));
  CHECK(limits.note(1, 1, 2));
  CHECK(limits.most(1, 1) == 2);
  Plan cut{{{0, 5}, 0}, {{5, 7}, 1}, {{7, 9}, 1}, {{9, 10}, 1}};
  cut.run_in_turns();
  CHECK(limits.applied_to(EvenSplit{}(10, 2), 1) == cut);
  CHECK(limits.applied_to(EvenSplit{}(4, 2), 1) == EvenSplit{}(4, 2));  // which fits
  CHECK(limits.applied_to(EvenSplit{}(0, 2), 1) == EvenSplit{}(0, 2));
}

TEST_CASE("a limit is for one shape and one device, and only becomes smaller") {
  Limits limits;
  CHECK(limits.note(1, 0, 50));
  CHECK(limits.most(1, 0) == 50);
  CHECK(limits.most(2, 0) == Limits::none);
  CHECK(limits.most(1, 1) == Limits::none);
  CHECK(limits.note(1, 0, 40));
  CHECK(limits.most(1, 0) == 40);
  CHECK_FALSE(limits.note(1, 0, 40));  // as it was known
  CHECK_FALSE(limits.note(1, 0, 45));
  CHECK(limits.most(1, 0) == 40);
  limits.note(2, 0, 10);
  CHECK(limits.most(0) == 10);  // for all shapes
  CHECK(limits.most(1) == Limits::none);
}

TEST_CASE("no device gets less than a row") {
  Limits limits;
  CHECK_FALSE(limits.note(1, 0, 0));
  CHECK(limits.most(0) == Limits::none);
}

TEST_CASE("a dealt plan stays dealt, and runs in turns where any device has a limit") {
  Limits limits;
  limits.note(1, 1, 20);
  const Plan dealt = fanout::DealtSplit{}(200, 2);
  const Plan cut = limits.applied_to(dealt, 1);
  CHECK(cut.is_dealt());
  CHECK(cut.runs_in_turns());
  CHECK(cut.rows() == 200);
  std::size_t rows[2] = {0, 0};
  bool is_whole = false;
  for (const Shard& shard : cut) {
    rows[shard.device] += shard.rows.size();
    if (shard.device == 1) CHECK(shard.rows.size() <= 20);
    is_whole = is_whole || shard.rows.size() == 25;
  }
  CHECK(rows[0] == 100);
  CHECK(rows[1] == 100);
  CHECK(is_whole);  // of the other device
  CHECK(limits.applied_to(dealt, 2) == dealt);
  CHECK(limits.applied_to(fanout::DealtSplit{}(20, 2), 1).runs_in_turns());  // or it could take over larger blocks
}

TEST_CASE("several shards of a limited device run in turns, though each of them fits") {
  Limits limits;
  limits.note(1, 1, 10);
  const Plan two_for_one{{{0, 5}, 0}, {{5, 10}, 1}, {{10, 15}, 1}};
  CHECK(limits.applied_to(two_for_one, 1).runs_in_turns());
  CHECK(limits.applied_to(two_for_one, 1).size() == 3);
  const Plan one_each{{{0, 5}, 0}, {{5, 15}, 1}};
  CHECK(limits.applied_to(one_each, 1) == one_each);
}
