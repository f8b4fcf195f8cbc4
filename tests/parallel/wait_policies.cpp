// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/asleep.hpp"
#include "support/count_to.hpp"
#include "support/skip.hpp"

using fanout::Context;
using fanout::DeviceSet;
using fanout::HostDevice;
using fanout::ParallelModel;
using fanout::View;
using fanout_test::count_to;

namespace {

// [policy]
struct Patient {
  static constexpr fanout::WaitRules rules{.spin = 200'000, .predicts = true};
};
const auto devices = [] { return fanout::host_devices({.count = 2, .wait = Patient{}}); };
// [/policy]

std::vector<DeviceSet<HostDevice>> sets_of_all_policies() {
  // [choice]
  auto spinning = fanout::host_devices({.count = 2, .wait = fanout::Spin{}});
  auto sleeping = fanout::host_devices({.count = 2, .wait = fanout::Park{}});
  auto adaptive = fanout::host_devices(2);
  // [/choice]
  return {adaptive, sleeping, devices(), spinning};
}

struct AfterLongShards {
  static constexpr fanout::WaitRules rules{.spin = 1'000, .longest_spin = 120'000'000, .inlines_small = true};
};

/// Adds its rows' numbers, and notes the threads that ran shards.
struct Adds {
  std::atomic<int>* threads;

  long forward(Context auto& ctx, View<const int, 1> x) const {
    threads[ctx.rank()] = fanout_test::this_thread();
    long sum = 0;
    for (const int number : x.values()) sum += number;
    return sum;
  }
};

template <class Model>
long total(const Model& model, int rows) {
  long sum = 0;
  const auto parts = model(count_to(static_cast<std::size_t>(rows)));
  for (const long part : parts) sum += part;
  return sum;
}

}  // namespace

TEST_CASE("calls give the same results with every wait policy, back to back and after gaps") {
  std::atomic<int> threads[2] = {0, 0};
  const auto sets = sets_of_all_policies();
  std::vector<ParallelModel<Adds, DeviceSet<HostDevice>>> models;
  for (const auto& set : sets) models.emplace_back(Adds{threads}, set);
  long wrong = 0;
  for (int round = 0; round < 300; ++round) {
    for (const auto& model : models) {
      for (const int rows : {1, 2, 7, 1000}) wrong += total(model, rows) != long{rows} * (rows - 1) / 2 ? 1 : 0;
    }
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
  }
  CHECK(wrong == 0);
}

TEST_CASE("a thread sleeps after its last call, unless it was told to spin") {
  for (const auto& set : {fanout::host_devices(2), fanout::host_devices({.count = 2, .wait = fanout::Park{}})}) {
    std::atomic<int> thread{0};
    std::barrier both(2);
    const ParallelModel meets{[&](View<const int, 1> x) {
                                both.arrive_and_wait();  // so that the other one's thread really runs it
                                if (x[0] != 0) thread = fanout_test::this_thread();
                                return 0;
                              },
                              set};
    for (int i = 0; i < 20; ++i) {
      meets(count_to(2));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    REQUIRE(thread != fanout_test::this_thread());
    fanout_test::until_asleep(thread);
  }
}

TEST_CASE("with long shards the device's thread and the caller spin longer before they sleep") {
  const auto set = fanout::host_devices({.count = 2, .wait = AfterLongShards{}});
  if (!set[1].bound()) {
    fanout_test::skip("the devices share cores");
    return;
  }
  const int caller = fanout_test::this_thread();
  std::atomic<int> thread{0};
  std::atomic<bool> waits{false};
  std::atomic<bool> caller_slept{false};
  std::array<std::chrono::milliseconds, 2> times{
      std::chrono::milliseconds(300),
      std::chrono::milliseconds(300)};  // so that they are to look for an eighth of that
  const ParallelModel model{[&](Context auto& ctx, View<const int, 1>) {
                              if (ctx.rank() == 0) {
                                while (thread == 0) std::this_thread::yield();
                                waits = true;
                              } else {
                                thread = fanout_test::this_thread();
                                fanout_test::until(waits);
                              }
                              const auto end = std::chrono::steady_clock::now() + times[ctx.rank()];
                              while (std::chrono::steady_clock::now() < end) {
                                if (ctx.rank() == 1 && fanout_test::is_asleep(caller)) caller_slept = true;
                              }
                            },
                            set};
  model(count_to(2));
  thread = 0;
  waits = caller_slept = false;
  times = {std::chrono::milliseconds(0), std::chrono::milliseconds(10)};
  model(count_to(2));
  REQUIRE(thread != caller);
  CHECK_FALSE(caller_slept);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK_FALSE(set[1].worker().is_asleep());
  fanout_test::until_asleep(thread);
  CHECK(set[1].worker().is_asleep());
}

TEST_CASE("a thread with the Spin policy spins even if all its shards are taken back before it wakes") {
  const auto set = fanout::host_devices({.count = 2, .wait = fanout::Spin{}});
  if (!set[1].bound()) {
    fanout_test::skip("the devices share cores");
    return;
  }
  const ParallelModel model{[](View<const int, 1>) {}, set};
  for (int i = 0; i < 20; ++i) {
    model(count_to(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_FALSE(set[1].worker().is_asleep());
  }
}

TEST_CASE("after calls that ran inline, slow shards are handed out again") {
  std::atomic<int> threads[3] = {0, 0, 0};
  std::atomic<bool> slow{false};
  const ParallelModel model{[&](Context auto& ctx, View<const int, 1> x) {
                              threads[ctx.rank()] = fanout_test::this_thread();
                              if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                              return x[0];
                            },
                            fanout::host_devices(3)};
  const int caller = fanout_test::this_thread();
  const auto ran_inline = [&] { return threads[1] == caller && threads[2] == caller; };
  for (int i = 0; i < 3000 || (i < 30'000 && !ran_inline()); ++i) model(count_to(3));  // some are handed out to learn
  CHECK(ran_inline());
  slow = true;
  for (int i = 0; i < 200 && (threads[1] == caller || threads[2] == caller); ++i) model(count_to(3));
  CHECK(threads[1] != caller);
  CHECK(threads[2] != caller);
}

TEST_CASE("shards that wait for each other do not deadlock after calls that ran inline") {
  std::atomic<bool> meet{false};
  std::barrier both(2);
  const ParallelModel model{[&](View<const int, 1> x) {
                              if (meet) both.arrive_and_wait();
                              return x[0];
                            },
                            fanout::host_devices(2)};
  for (int round = 0; round < 3; ++round) {
    meet = false;
    for (int i = 0; i < 2000; ++i) model(count_to(2));
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    meet = true;
    for (int i = 0; i < 3; ++i) CHECK(model(count_to(2)).extent(0) == 2);
  }
}

TEST_CASE("shards that wait for each other do not deadlock if another set lets the thread spin") {
  std::atomic<bool> meet{false};
  std::barrier both(2);
  const ParallelModel model{[&](View<const int, 1> x) {
                              if (meet) both.arrive_and_wait();
                              return x[0];
                            },
                            fanout::host_devices(2)};
  const ParallelModel spins{[](View<const int, 1> x) { return x[0]; },
                            fanout::host_devices({.count = 2, .wait = fanout::Spin{}})};
  for (int i = 0; i < 2000; ++i) model(count_to(2));
  for (int i = 0; i < 20; ++i) spins(count_to(2));
  meet = true;
  using clock = std::chrono::steady_clock;
  int slow = 0;
  for (int i = 0; i < 200; ++i) {
    const auto begin = clock::now();
    CHECK(model(count_to(2)).extent(0) == 2);
    slow += clock::now() - begin > std::chrono::milliseconds(15) ? 1 : 0;
  }
  MESSAGE("slow calls: " << slow);
  CHECK(slow <= 3);  // one, on a machine that is idle
}

TEST_CASE("regular large calls are right, and small calls run inline") {
  std::atomic<int> threads[2] = {0, 0};
  const ParallelModel model{Adds{threads}, fanout::host_devices(2)};
  const fanout::Tensor<int, 1> large = count_to(400'000);
  for (int i = 0; i < 30; ++i) {
    CHECK(model(large).extent(0) == 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (int i = 0; i < 5000; ++i) model(count_to(2));
  CHECK(threads[0] == fanout_test::this_thread());
}
