// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/waiting/dispatch_decision.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

using fanout::Adaptive;
using fanout::Plan;
using fanout::detail::CallStatistics;
using fanout::detail::DispatchDecision;
using fanout::detail::Inline;
using fanout::detail::Ticks;

namespace {

struct Thread {
  bool asleep = false;
  std::int64_t left = 0;
  bool is_asleep() const { return asleep; }
  void note_deferred(std::int64_t nanoseconds) { left = nanoseconds; }
};
struct OneTask {
  std::size_t shard;
  Thread* worker;
};

const Plan three_shards{{.rows = {0, 4}, .device = 0}, {.rows = {4, 8}, .device = 1}, {.rows = {8, 12}, .device = 2}};

/// Three shards, and the threads of their devices.
struct Tasks {
  std::array<Thread, 3> threads;
  std::array<OneTask, 3> tasks{OneTask{0, &threads[0]}, OneTask{1, &threads[1]}, OneTask{2, &threads[2]}};
  std::size_t size() const { return tasks.size(); }
  auto begin() const { return tasks.begin(); }
  auto end() const { return tasks.end(); }
};

/// A call as run_shards makes it, whose own shard takes so long, and all of it so much longer.
Inline call(CallStatistics& times, Tasks& tasks, std::int64_t own, std::int64_t others) {
  const auto wait = [](std::int64_t nanoseconds) {
    for (const std::int64_t end = Ticks::now() + Ticks::in(nanoseconds); Ticks::now() < end;) {
    }
  };
  DispatchDecision keeping(&times, three_shards, Adaptive::rules);
  if (keeping.what() != Inline::all) keeping.check_sleeping_workers(tasks);
  keeping.own_begins();
  wait(own);
  keeping.own_ends();
  wait(others);
  keeping.all_ended(three_shards.size());
  return keeping.what();
}

}  // namespace

TEST_CASE("nothing runs inline without statistics, before the first call, or if there is nothing to dispatch") {
  CallStatistics times;
  times.body.note(4, 1);
  CHECK(DispatchDecision(&times, three_shards, Adaptive::rules).what() == Inline::all);
  CHECK(DispatchDecision(nullptr, three_shards, Adaptive::rules).what() == Inline::none);
  CHECK(DispatchDecision(&times, three_shards, fanout::Spin::rules).what() == Inline::none);
  CHECK(DispatchDecision(&times, Plan{{.rows = {0, 4}, .device = 0}}, Adaptive::rules).what() == Inline::none);
  CallStatistics fresh;
  CHECK(DispatchDecision(&fresh, three_shards, Adaptive::rules).what() == Inline::none);
}

TEST_CASE("shards shorter than a wake-up run inline only if their thread sleeps") {
  CallStatistics times;
  Tasks tasks;
  times.body.note(4, Ticks::in(10'000));
  const auto decide = [&] {
    DispatchDecision keeping(&times, three_shards, Adaptive::rules);
    keeping.check_sleeping_workers(tasks);
    return keeping.what();
  };
  CHECK(decide() == Inline::none);
  tasks.threads[0].asleep = true;  // the caller's own
  CHECK(decide() == Inline::none);
  tasks.threads[2].asleep = true;
  CHECK(decide() == Inline::asleep);  // 10 us against 50
  times.body.note(4, Ticks::in(1'000'000'000));
  for (int i = 0; i < 10; ++i) times.body.note(4, Ticks::in(1'000'000));
  DispatchDecision large(&times, three_shards, Adaptive::rules);
  large.check_sleeping_workers(tasks);
  CHECK(large.what() == Inline::none);
}

TEST_CASE("if all threads sleep, small shards run inline, and those worth it are also deferred to their threads") {
  CallStatistics times;
  Tasks tasks;
  for (Thread& thread : tasks.threads) thread.asleep = true;
  const auto told = [&](std::int64_t nanoseconds) {
    for (int i = 0; i < 10; ++i) times.body.note(4, Ticks::in(nanoseconds));
    DispatchDecision keeping(&times, three_shards, Adaptive::rules);
    keeping.check_sleeping_workers(tasks);
    CHECK(keeping.what() == Inline::all);
    CHECK(tasks.threads[0].left == 0);  // the caller's own
    CHECK(tasks.threads[1].left == tasks.threads[2].left);
    return tasks.threads[2].left;
  };
  CHECK(told(400) == 0);
  CHECK(told(10'000) > 19'000);
  CHECK(told(10'000) < 21'000);
}

TEST_CASE("if all threads sleep, the caller's own shard is timed from its own start") {
  CallStatistics times;
  Tasks tasks;
  for (Thread& thread : tasks.threads) thread.asleep = true;
  times.body.note(4, Ticks::in(10'000));
  DispatchDecision keeping(&times, three_shards, Adaptive::rules);
  keeping.check_sleeping_workers(tasks);
  for (const std::int64_t end = Ticks::now() + Ticks::in(100'000); Ticks::now() < end;) {
  }
  keeping.own_begins();
  keeping.own_ends();
  CHECK(times.body.expected(4) < Ticks::in(10'000));
}

TEST_CASE("calls learn that dispatch costs more than it gains, and try it again later") {
  CallStatistics times;
  Tasks tasks;
  CHECK(call(times, tasks, 2'000, 9'000) == Inline::none);  // nothing was known
  int handed_out = 0;
  while (call(times, tasks, 2'000, 9'000) == Inline::none) REQUIRE(++handed_out < 100);
  int kept = 1;
  while (call(times, tasks, 2'000, 100) == Inline::all) REQUIRE(++kept < 3000);
  CHECK(kept > 8);
}

TEST_CASE("after a thread found a deferred shard the next calls are dispatched, longer each time") {
  CallStatistics times;
  Tasks tasks;
  times.body.note(4, 1);
  const auto decide = [&] {
    DispatchDecision keeping(&times, three_shards, Adaptive::rules);
    if (keeping.what() != Inline::all) keeping.check_sleeping_workers(tasks);
    return keeping.what();
  };
  const auto calls_that_hand_out = [&] {
    DispatchDecision found(&times, three_shards, Adaptive::rules);
    CHECK(found.what() == Inline::all);
    times.note_found();
    int calls = 0;
    while (decide() == Inline::none) ++calls;
    return calls;
  };
  CHECK(decide() == Inline::all);
  CHECK(calls_that_hand_out() == 1024);
  CHECK(calls_that_hand_out() == 2048);
  int longest = 0;
  for (int i = 0; i < 10; ++i) longest = calls_that_hand_out();
  CHECK(longest == 65'536);
  times.note_found();
  for (Thread& thread : tasks.threads) thread.asleep = true;
  times.body.note(4, Ticks::in(10'000));  // worth dispatching if the threads were awake
  CHECK(decide() == Inline::none);
}

TEST_CASE("calls learn that the other shards take longer than the caller's own") {
  CallStatistics times;
  Tasks tasks;
  times.body.note(4, 1);
  int kept = 0;
  while (call(times, tasks, 0, 30'000) == Inline::all) REQUIRE(++kept < 100);
  CHECK(kept > 1);
}

TEST_CASE("a call without statistics is dispatched and notes nothing") {
  DispatchDecision keeping(nullptr, three_shards, Adaptive::rules);
  Tasks tasks;
  keeping.check_sleeping_workers(tasks);
  CHECK(keeping.what() == Inline::none);
  keeping.own_begins();
  keeping.own_ends();
  keeping.all_ended(3);
}
