// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/measure/measured_calls.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/observe/report.hpp>

#include "device/clock_device.hpp"

using fanout::CallTimes;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;

namespace {

using Rows = std::span<const int>;

/// Gives all rows to the device that had none in the last call. Keeps what it has seen.
struct Alternating {
  std::shared_ptr<std::vector<std::size_t>> seen = std::make_shared<std::vector<std::size_t>>();
  std::size_t next = 0;
  bool fails = false;

  Plan operator()(std::size_t rows, std::size_t devices) const { return {{{0, rows}, next % devices}}; }
  void observe(const CallTimes& call) {
    seen->push_back(call.plan->rows());
    next = (*call.plan)[0].device + 1;
    if (fails) throw std::runtime_error("observe");
  }
};

int rows_of(Rows rows) {
  if (!rows.empty() && rows[0] < 0) throw std::runtime_error("negative");
  return static_cast<int>(rows.size());
}

}  // namespace

TEST_CASE("a policy that observes sees each call that did not fail, and plans the next") {
  const Alternating policy;
  const ParallelModel model{rows_of, host_devices(2), Options{.split = policy}};
  CHECK(model.plan(8) == Plan{{{0, 8}, 0}});
  model(std::vector<int>(8));
  CHECK(model.plan(8) == Plan{{{0, 8}, 1}});
  model.async(std::vector<int>(5)).get();
  CHECK(model.plan(8) == Plan{{{0, 8}, 0}});
  CHECK_THROWS_AS(model(std::vector<int>{-1}), fanout::ReplicaError);
  CHECK(model.plan(8) == Plan{{{0, 8}, 0}});
  CHECK(*policy.seen == std::vector<std::size_t>{8, 5});
  CHECK(policy.next == 0);  // the model has a copy of its own
}

TEST_CASE("a call whose result is taken after the model's end is not shown to the policy") {
  const Alternating policy;
  auto pending = [&policy] {
    const ParallelModel model{rows_of, host_devices(2), Options{.split = policy}};
    model(std::vector<int>(8));
    return model.async(std::vector<int>(5));
  }();
  CHECK(pending.get()[0] == 5);
  CHECK(*policy.seen == std::vector<std::size_t>{8});
}

TEST_CASE("an exception of a policy that observes breaks no call") {
  const ParallelModel model{rows_of, host_devices(2), Options{.split = Alternating{.fails = true}}};
  CHECK(model(std::vector<int>(8))[0] == 8);
  CHECK(model(std::vector<int>(8))[0] == 8);
  CHECK(model.report().calls() == 2);
}

TEST_CASE("each model measures its own calls") {
  const ParallelModel first{rows_of, host_devices(2), Options{.measure = true}};
  const ParallelModel second{rows_of, host_devices(1), Options{.measure = true}};
  first(std::vector<int>(8));
  first(std::vector<int>(3));
  second(std::vector<int>(4));
  CHECK_THROWS_AS(second(std::vector<int>{-1}), fanout::ReplicaError);
  CHECK(first.report().calls() == 2);
  CHECK(first.report().devices().size() == 2);
  CHECK(first.report().devices()[0].rows == 6);
  CHECK(first.report().devices()[1].rows == 5);
  CHECK(second.report().calls() == 1);
  CHECK(second.report().failed_calls() == 1);
}

TEST_CASE("measured times add up exactly") {
  using fanout_test::ClockDevice;
  const ParallelModel model{[](fanout::Context auto& ctx, Rows rows) {
                              ctx.device().time_of_device() += 1000 * static_cast<int>(rows.size());
                              ctx.device().left() += 50;
                            },
                            fanout_test::clock_devices(2), Options{.measure = true}};
  ClockDevice::all_at(0);
  for (int i = 0; i < 3; ++i) {
    ClockDevice::all_at(i * 1'000'000);
    model(std::vector<int>(6));
  }
  const fanout::Report report = model.report();
  REQUIRE(report.devices().size() == 2);
  CHECK(report.devices()[0].forward_seconds == doctest::Approx(9e-6).epsilon(1e-12));
  CHECK(report.devices()[1].wait_seconds == doctest::Approx(150e-9).epsilon(1e-12));
  CHECK(report.shards_seconds() == doctest::Approx(9.15e-6).epsilon(1e-12));
  CHECK(report.load_balance() == 1);
}
