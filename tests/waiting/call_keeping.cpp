// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/waiting/call_keeping.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>

using fanout::Adaptive;
using fanout::Plan;
using fanout::detail::CallKeeping;
using fanout::detail::CallTimes;
using fanout::detail::Keeping;
using fanout::detail::Ticks;

namespace {

struct Thread {
  bool asleep = false;
  std::int64_t left = 0;
  bool is_asleep() const { return asleep; }
  void note_left(std::int64_t nanoseconds) { left = nanoseconds; }
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
Keeping call(CallTimes& times, Tasks& tasks, std::int64_t own, std::int64_t others) {
  const auto wait = [](std::int64_t nanoseconds) {
    for (const std::int64_t end = Ticks::now() + Ticks::in(nanoseconds); Ticks::now() < end;) {
    }
  };
  CallKeeping keeping(&times, three_shards, Adaptive::rules);
  if (keeping.what() != Keeping::all) keeping.look_who_sleeps(tasks);
  keeping.own_begins();
  wait(own);
  keeping.own_ends();
  wait(others);
  keeping.all_ended(three_shards.size());
  return keeping.what();
}

}  // namespace

TEST_CASE("nothing is kept where nothing is learnt, or was yet, or there is nothing to hand out") {
  CallTimes times;
  times.body.note(4, 1);
  CHECK(CallKeeping(&times, three_shards, Adaptive::rules).what() == Keeping::all);
  CHECK(CallKeeping(nullptr, three_shards, Adaptive::rules).what() == Keeping::none);
  CHECK(CallKeeping(&times, three_shards, fanout::Spin::rules).what() == Keeping::none);
  CHECK(CallKeeping(&times, Plan{{.rows = {0, 4}, .device = 0}}, Adaptive::rules).what() == Keeping::none);
  CallTimes fresh;
  CHECK(CallKeeping(&fresh, three_shards, Adaptive::rules).what() == Keeping::none);
}

TEST_CASE("bodies that gain less than a wake are kept from those that sleep, and from no others") {
  CallTimes times;
  Tasks tasks;
  times.body.note(4, Ticks::in(10'000));
  const auto decide = [&] {
    CallKeeping keeping(&times, three_shards, Adaptive::rules);
    keeping.look_who_sleeps(tasks);
    return keeping.what();
  };
  CHECK(decide() == Keeping::none);
  tasks.threads[0].asleep = true;  // the caller's own
  CHECK(decide() == Keeping::none);
  tasks.threads[2].asleep = true;
  CHECK(decide() == Keeping::asleep);  // 10 us against 50
  times.body.note(4, Ticks::in(1'000'000'000));
  for (int i = 0; i < 10; ++i) times.body.note(4, Ticks::in(1'000'000));
  CallKeeping large(&times, three_shards, Adaptive::rules);
  large.look_who_sleeps(tasks);
  CHECK(large.what() == Keeping::none);
}

TEST_CASE("where all sleep, small bodies are all kept, and each thread is told of what it would gain from") {
  CallTimes times;
  Tasks tasks;
  for (Thread& thread : tasks.threads) thread.asleep = true;
  const auto told = [&](std::int64_t nanoseconds) {
    for (int i = 0; i < 10; ++i) times.body.note(4, Ticks::in(nanoseconds));
    CallKeeping keeping(&times, three_shards, Adaptive::rules);
    keeping.look_who_sleeps(tasks);
    CHECK(keeping.what() == Keeping::all);
    CHECK(tasks.threads[0].left == 0);  // the caller's own
    CHECK(tasks.threads[1].left == tasks.threads[2].left);
    return tasks.threads[2].left;
  };
  CHECK(told(400) == 0);
  CHECK(told(10'000) > 19'000);
  CHECK(told(10'000) < 21'000);
}

TEST_CASE("a call in which all sleep tells what its own shard took, without what stood before it") {
  CallTimes times;
  Tasks tasks;
  for (Thread& thread : tasks.threads) thread.asleep = true;
  times.body.note(4, Ticks::in(10'000));
  CallKeeping keeping(&times, three_shards, Adaptive::rules);
  keeping.look_who_sleeps(tasks);
  for (const std::int64_t end = Ticks::now() + Ticks::in(100'000); Ticks::now() < end;) {
  }
  keeping.own_begins();
  keeping.own_ends();
  CHECK(times.body.expected(4) < Ticks::in(10'000));
}

TEST_CASE("calls learn that handing out costs more than it gains, and try it again by and by") {
  CallTimes times;
  Tasks tasks;
  CHECK(call(times, tasks, 2'000, 9'000) == Keeping::none);  // nothing was known
  int handed_out = 0;
  while (call(times, tasks, 2'000, 9'000) == Keeping::none) REQUIRE(++handed_out < 100);
  int kept = 1;
  while (call(times, tasks, 2'000, 100) == Keeping::all) REQUIRE(++kept < 3000);
  CHECK(kept > 8);
}

TEST_CASE("when a thread found a kept shard, the next calls keep none, and after each such time for longer") {
  CallTimes times;
  Tasks tasks;
  times.body.note(4, 1);
  const auto decide = [&] {
    CallKeeping keeping(&times, three_shards, Adaptive::rules);
    if (keeping.what() != Keeping::all) keeping.look_who_sleeps(tasks);
    return keeping.what();
  };
  const auto calls_that_hand_out = [&] {
    CallKeeping found(&times, three_shards, Adaptive::rules);
    CHECK(found.what() == Keeping::all);
    times.note_found();
    int calls = 0;
    while (decide() == Keeping::none) ++calls;
    return calls;
  };
  CHECK(decide() == Keeping::all);
  CHECK(calls_that_hand_out() == 1024);
  CHECK(calls_that_hand_out() == 2048);
  int longest = 0;
  for (int i = 0; i < 10; ++i) longest = calls_that_hand_out();
  CHECK(longest == 65'536);
  times.note_found();
  for (Thread& thread : tasks.threads) thread.asleep = true;
  times.body.note(4, Ticks::in(10'000));  // worth handing out, were the threads awake
  CHECK(decide() == Keeping::none);
}

TEST_CASE("calls learn that shards which are kept take longer than the caller's own") {
  CallTimes times;
  Tasks tasks;
  times.body.note(4, 1);
  int kept = 0;
  while (call(times, tasks, 0, 30'000) == Keeping::all) REQUIRE(++kept < 100);
  CHECK(kept > 1);
}

TEST_CASE("a call without anything to learn from keeps nothing, and notes nothing") {
  CallKeeping keeping(nullptr, three_shards, Adaptive::rules);
  Tasks tasks;
  keeping.look_who_sleeps(tasks);
  CHECK(keeping.what() == Keeping::none);
  keeping.own_begins();
  keeping.own_ends();
  keeping.all_ended(3);
}
