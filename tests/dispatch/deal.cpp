// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/dispatch/deal.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/device/completion.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/plan/dealt_split.hpp>

#include "device/toy_device.hpp"

using fanout::DealtSplit;
using fanout::DeviceSet;
using fanout::Plan;
using fanout::detail::BlockRunner;
using fanout::detail::Deal;

namespace {

/// A body that notes which device ran which block, and on which blocks devices fail.
struct CountedBlocks {
  explicit CountedBlocks(std::size_t blocks) : runs(blocks) {}

  bool run_on(std::size_t block, std::size_t device) const noexcept {
    ++runs[block];
    return broken.empty() || !broken[device];
  }
  void tell_late() const noexcept { ++told; }

  mutable std::vector<std::atomic<int>> runs;
  std::vector<char> broken;  // devices whose blocks fail
  mutable std::atomic<int> told{0};
};

void check_each_once(const CountedBlocks& body) {
  for (const std::atomic<int>& runs : body.runs) CHECK(runs == 1);
}

std::vector<std::size_t> rows_of(const Plan& plan, std::size_t devices) {
  std::vector<std::size_t> rows(devices);
  for (const fanout::Shard& shard : plan) rows[shard.device] += shard.rows.size();
  return rows;
}

/// A device whose time moves by hand.
class Timed : public fanout_test::ToyDevice {
 public:
  Timed(int index, std::int64_t& now) : ToyDevice(index), now_(&now) {}
  std::int64_t time() const { return *now_; }
  fanout::backend::Completion completion() const { return {}; }
  static std::vector<Timed> visible() { return {}; }
  [[maybe_unused]] friend bool operator==(const Timed& a, const Timed& b) { return a.id() == b.id(); }

 private:
  std::int64_t* now_;
};
static_assert(fanout::detail::HasOwnClock<Timed>);

/// Runs blocks in virtual time.
struct BlocksInTime {
  bool run_on(std::size_t block, std::size_t device) const noexcept {
    times[device] += static_cast<std::int64_t>(plan[block].rows.size()) * per_row[device];
    order.push_back(block);
    return !fails[device];
  }
  void tell_late() const noexcept {}

  const Plan& plan;
  std::int64_t* times;
  std::vector<std::int64_t> per_row;
  std::vector<char> fails;
  mutable std::vector<std::size_t> order = {};
};

}  // namespace

TEST_CASE("a device that deals alone runs each block exactly once, its own first") {
  const auto devices = fanout::host_devices(3);
  const Plan plan = DealtSplit{}(1000, 3);
  const CountedBlocks body(plan.size());
  Deal deal(plan, devices, BlockRunner(body));
  CHECK(deal.dealers().size() == 3);
  CHECK(deal.dealers().rows() == 0);
  deal(1);
  check_each_once(body);
  CHECK(rows_of(deal.as_run(), 3) == std::vector<std::size_t>{0, 1000, 0});
  deal(0);  // nothing is left
  check_each_once(body);
  deal.tell_late();
  CHECK(body.told == 1);
}

TEST_CASE("each block runs exactly once on several threads") {
  const auto devices = fanout::host_devices(4);
  for (int round = 0; round < 200; ++round) {
    const Plan plan = DealtSplit{}(5000, 4);
    const CountedBlocks body(plan.size());
    Deal deal(plan, devices, BlockRunner(body));
    std::atomic<std::size_t> ready{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        ++ready;
        while (ready < 4) {  // so that all take blocks at the same time
        }
        deal(i);
      });
    for (std::thread& thread : threads) thread.join();
    check_each_once(body);
    fanout::check_plan(deal.as_run(), 5000, 4);
  }
}

TEST_CASE("200,000 blocks are dealt in a moment") {
  constexpr std::size_t blocks = 200'000;
  const auto devices = fanout::host_devices(2);
  Plan plan(blocks, [](std::size_t i) { return fanout::Shard{.rows = {i, i + 1}, .device = i % 2}; });
  plan.deal();
  const CountedBlocks body(plan.size());
  Deal deal(plan, devices, BlockRunner(body));
  const auto began = std::chrono::steady_clock::now();
  deal(0);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));  // less than 0.1 s
  CHECK(rows_of(deal.as_run(), 2) == std::vector<std::size_t>{blocks, 0});
}

TEST_CASE("a device whose block fails leaves the rest to others") {
  const auto devices = fanout::host_devices(2);
  const Plan plan = DealtSplit{}(1000, 2);
  CountedBlocks body(plan.size());
  body.broken = {1, 0};
  Deal deal(plan, devices, BlockRunner(body));
  deal(0);
  CHECK(body.runs[0] == 1);
  CHECK(body.runs[2] == 0);
  deal(1);
  check_each_once(body);
  CHECK(rows_of(deal.as_run(), 2) == std::vector<std::size_t>{plan[0].rows.size(), 1000 - plan[0].rows.size()});
}

TEST_CASE("blocks without rows are left to others, too") {
  const auto devices = fanout::host_devices(2);
  Plan plan{{{0, 5}, 0}, {{5, 5}, 0}, {{5, 10}, 1}, {{10, 10}, 0}};
  plan.deal();
  CountedBlocks body(plan.size());
  body.broken = {1, 0};
  Deal deal(plan, devices, BlockRunner(body));
  deal(0);
  deal(1);
  check_each_once(body);
}

TEST_CASE("if the blocks of all devices fail, the last device runs all that are left") {
  const auto devices = fanout::host_devices(2);
  const Plan plan = DealtSplit{}(1000, 2);
  CountedBlocks body(plan.size());
  body.broken = {1, 1};
  Deal deal(plan, devices, BlockRunner(body));
  deal(1);
  deal(0);
  check_each_once(body);
}

TEST_CASE("devices with clocks of their own get blocks by their times: a slow one is relieved by a fast one") {
  std::vector<std::int64_t> times(2);
  const DeviceSet<Timed> devices(std::vector<Timed>{Timed(0, times[0]), Timed(1, times[1])});
  const Plan plan = DealtSplit{}(10'000, 2);
  const BlocksInTime body{.plan = plan, .times = times.data(), .per_row = {10, 2}, .fails = {0, 0}};
  Deal deal(plan, devices, BlockRunner(body));
  deal(0);  // any thread runs all
  std::vector<std::size_t> runs(plan.size());
  for (const std::size_t block : body.order) ++runs[block];
  CHECK(runs == std::vector<std::size_t>(plan.size(), 1));
  const auto rows = rows_of(deal.as_run(), 2);
  CHECK(times[0] == static_cast<std::int64_t>(10 * rows[0]));
  CHECK(times[1] == static_cast<std::int64_t>(2 * rows[1]));
  // The ideal is 16,667; as planned it would be 50,000.
  CHECK(std::max(times[0], times[1]) <= 18'000);
}

TEST_CASE("devices with clocks of their own leave blocks to others when they fail") {
  std::vector<std::int64_t> times(2);
  const DeviceSet<Timed> devices(std::vector<Timed>{Timed(0, times[0]), Timed(1, times[1])});
  const Plan plan = DealtSplit{}(1000, 2);
  const BlocksInTime body{.plan = plan, .times = times.data(), .per_row = {1, 1}, .fails = {0, 1}};
  Deal deal(plan, devices, BlockRunner(body));
  deal(1);
  CHECK(body.order.size() == plan.size());
  CHECK(rows_of(deal.as_run(), 2)[1] == plan[1].rows.size());
}

TEST_CASE("if the plan is not dealt, each device runs its own blocks in their order, also after one has failed") {
  const auto devices = fanout::host_devices(2);
  const Plan plan{{{0, 5}, 0}, {{5, 10}, 0}, {{10, 11}, 1}, {{11, 16}, 0}};
  SUBCASE("on threads") {
    CountedBlocks body(plan.size());
    body.broken = {1, 0};
    Deal deal(plan, devices, BlockRunner(body));
    deal(0);
    CHECK(body.runs[3] == 1);
    CHECK(body.runs[2] == 0);
    deal(1);
    check_each_once(body);
    CHECK(deal.as_run() == plan);
  }
  SUBCASE("in virtual time") {
    std::vector<std::int64_t> times(2);
    const DeviceSet<Timed> timed(std::vector<Timed>{Timed(0, times[0]), Timed(1, times[1])});
    const BlocksInTime body{.plan = plan, .times = times.data(), .per_row = {1, 1}, .fails = {1, 1}};
    Deal deal(plan, timed, BlockRunner(body));
    deal(0);
    CHECK(deal.as_run() == plan);
    CHECK(body.order == std::vector<std::size_t>{0, 2, 1, 3});
  }
}

TEST_CASE("a device with a limit takes over small blocks only, until another device has failed") {
  const auto devices = fanout::host_devices(2);
  Plan plan{{{0, 8}, 0}, {{8, 10}, 1}, {{10, 16}, 0}, {{16, 18}, 0}};
  plan.deal();
  CountedBlocks body(plan.size());
  SUBCASE("no failure") {
    Deal deal(plan, devices, BlockRunner(body));
    deal.limit(1, 2);
    deal(1);  // its own block, and the last one
    CHECK(body.runs[1] == 1);
    CHECK(body.runs[3] == 1);
    CHECK(body.runs[0] + body.runs[2] == 0);
    deal(0);
    check_each_once(body);
  }
  SUBCASE("a failure before") {
    body.broken = {1, 0};
    Deal deal(plan, devices, BlockRunner(body));
    deal.limit(1, 2);
    deal(0);  // fails at once
    deal(1);
    check_each_once(body);
  }
  SUBCASE("a failure when it takes nothing any more") {
    body.broken = {1, 0};
    Deal deal(plan, devices, BlockRunner(body));
    deal.limit(1, 2);
    deal(1);
    deal(0);  // nobody else would run the rest
    check_each_once(body);
  }
}
