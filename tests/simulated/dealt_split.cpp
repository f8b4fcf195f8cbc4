// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Models with a DealtSplit, on simulated devices in virtual time, and on host devices.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

using fanout::Context;
using fanout::DealtSplit;
using fanout::DeviceId;
using fanout::EvenSplit;
using fanout::host_devices;
using fanout::MeasuredSplit;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::Report;
using fanout::simulated_devices;
using fanout::SimulatedDeviceOptions;
using fanout::Tensor;
using fanout::View;

namespace dealt_test {

const DeviceId on_host{.kind = "host", .index = 0};

/// Doubles its rows. Counts them, and adds them up in an order that rounding shows.
struct Doubles {
  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    float sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y[i] = 2 * x[i];
      sum += 0.1F * x[i];
    }
    return std::tuple(y, fanout::psum(x.size()), fanout::psum(sum));
  }
};

Tensor<float, 1> ascending(std::size_t rows) {
  Tensor<float, 1> x(rows);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

template <class Model>
double seconds_of_call(const Model& model, const Tensor<float, 1>& x) {
  const double before = model.report().seconds();
  static_cast<void>(model(x));
  return model.report().seconds() - before;
}

/// The least time of a batch on `devices` equal devices of which one becomes four times slower at `at` seconds.
double ideal(std::size_t rows, double rows_per_second, std::size_t devices, double at) {
  const double all = static_cast<double>(rows) / rows_per_second;  // on one device
  const auto count = static_cast<double>(devices);
  return at + (all - at * count) / (count - 0.75);
}

}  // namespace dealt_test

TEST_CASE("a dealt call keeps its efficiency if a device becomes four times slower in its middle") {
  for (const std::size_t count : {2U, 3U, 4U, 8U}) {
    for (const int percent : {20, 35, 50, 65, 80}) {
      CAPTURE(count);
      CAPTURE(percent);
      const double even_time = 0.1;
      const double at = even_time * percent / 100;
      std::vector<SimulatedDeviceOptions> options(count, {.noise = 0.03});
      options[1].slow_down = {.at = std::chrono::duration<double>(at), .factor = 4};
      const auto x = dealt_test::ascending(100'000 * count);
      const ParallelModel dealt{dealt_test::Doubles{}, simulated_devices(options),
                                Options{.output = dealt_test::on_host, .split = DealtSplit{}, .measure = true}};
      const ParallelModel even{dealt_test::Doubles{}, simulated_devices(options),
                               Options{.output = dealt_test::on_host, .measure = true}};
      const double best = dealt_test::ideal(x.size(), 1e6, count, at);
      CHECK(best / dealt_test::seconds_of_call(dealt, x) >= 0.85);
      if (percent == 20) CHECK(best / dealt_test::seconds_of_call(even, x) <= 0.45);
    }
  }
}

TEST_CASE("results of a dealt call do not depend on who ran a block") {
  const auto x = dealt_test::ascending(10'007);
  const auto run = [&x](const std::vector<SimulatedDeviceOptions>& options, bool asynchronous = false) {
    const ParallelModel model{dealt_test::Doubles{}, simulated_devices(options),
                              Options{.output = dealt_test::on_host, .split = DealtSplit{}, .measure = true}};
    auto result = asynchronous ? model.async(x).get() : model(x);
    std::vector<std::uint64_t> rows;
    for (const auto& device : model.report().devices()) rows.push_back(device.rows);
    return std::pair(std::move(result), rows);
  };
  const auto [equal, equal_rows] = run(std::vector<SimulatedDeviceOptions>(3));
  const auto [unequal, unequal_rows] = run({{}, {.rows_per_second = 1e5}, {.rows_per_second = 3e6}});
  CHECK(equal_rows != unequal_rows);
  CHECK(std::get<0>(equal) == std::get<0>(unequal));
  CHECK(std::get<1>(equal) == x.size());
  CHECK(std::get<2>(equal) == std::get<2>(unequal));  // to the last bit
  for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::get<0>(unequal)[i] == 2 * x[i]);
  const auto [again, again_rows] = run({{}, {.rows_per_second = 1e5}, {.rows_per_second = 3e6}});
  CHECK(again_rows == unequal_rows);
  const auto [asynchronous, asynchronous_rows] = run({{}, {.rows_per_second = 1e5}, {.rows_per_second = 3e6}}, true);
  CHECK(asynchronous == again);
  CHECK(asynchronous_rows == unequal_rows);
}

TEST_CASE("on equal devices a dealt call takes at most 2 % longer than an even one") {
  const std::vector<SimulatedDeviceOptions> options(4);
  const auto x = dealt_test::ascending(400'000);
  const ParallelModel dealt{dealt_test::Doubles{}, simulated_devices(options),
                            Options{.output = dealt_test::on_host, .split = DealtSplit{MeasuredSplit{}}}};
  const ParallelModel even{dealt_test::Doubles{}, simulated_devices(options),
                           Options{.output = dealt_test::on_host, .measure = true}};
  for (int call = 0; call < 5; ++call) {
    CHECK(dealt_test::seconds_of_call(dealt, x) <= 1.02 * dealt_test::seconds_of_call(even, x));
  }
}

TEST_CASE("a dealt measured split learns from the devices that ran the blocks") {
  const std::vector<SimulatedDeviceOptions> options{{.rows_per_second = 1e6}, {.rows_per_second = 4e6}};
  const auto x = dealt_test::ascending(100'000);
  const ParallelModel model{dealt_test::Doubles{}, simulated_devices(options),
                            Options{.output = dealt_test::on_host, .split = DealtSplit{MeasuredSplit{}}}};
  for (int call = 0; call < 3; ++call) model(x);
  std::vector<std::size_t> rows(2);
  for (const fanout::Shard& shard : model.plan(x.size())) rows[shard.device] += shard.rows.size();
  CHECK(static_cast<double>(rows[1]) / static_cast<double>(rows[0]) == doctest::Approx(4).epsilon(0.02));
  CHECK(dealt_test::seconds_of_call(model, x) <= 1.02 * 100'000 / 5e6);
  CHECK(model.split<DealtSplit<MeasuredSplit>>().shares().weights(100'000, 2)[1] == doctest::Approx(0.8).epsilon(0.02));
}

TEST_CASE("host devices deal blocks, and outputs are not copied") {
  const auto x = dealt_test::ascending(100'003);
  const ParallelModel model{dealt_test::Doubles{}, host_devices(3), Options{.split = DealtSplit{}, .measure = true}};
  for (int call = 0; call < 50; ++call) {
    const auto [y, rows, sum] = model(x);
    CHECK(rows == x.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) wrong += y[i] == 2 * x[i] ? 0 : 1;
    CHECK(wrong == 0);
  }
  const Report report = model.report();
  CHECK(report.calls() == 50);
  std::uint64_t rows = 0;
  for (const auto& device : report.devices()) rows += device.rows;
  CHECK(rows == 50 * x.size());
}

TEST_CASE("each block of a dealt call is a shard of its own") {
  const ParallelModel model{
      [](Context auto& ctx, View<const float, 1> x) { return std::tuple(ctx.rank(), ctx.size(), x.size()); },
      host_devices(2), Options{.split = DealtSplit{}}};
  const auto [rank, size, rows] = model(dealt_test::ascending(1000));
  REQUIRE(rank.size() > 2);
  for (std::size_t i = 0; i < rank.size(); ++i) {
    CHECK(rank[i] == i);
    CHECK(size[i] == rank.size());
  }
  CHECK(std::accumulate(rows.begin(), rows.end(), std::size_t{0}) == 1000);
}

namespace dealt_test {

/// Deals these blocks.
struct Blocks {
  Plan plan;
  Plan operator()(std::size_t rows, std::size_t devices) const {
    if (rows != plan.rows()) return EvenSplit{}(rows, devices);
    Plan dealt = plan;
    dealt.deal();
    return dealt;
  }
};

}  // namespace dealt_test

TEST_CASE("a device whose block fails leaves the rest to others, and each block runs once, also if all fail") {
  const Plan plan{{{0, 40}, 0}, {{40, 40}, 1}, {{40, 70}, 1}, {{70, 70}, 0}, {{70, 80}, 0}, {{80, 90}, 1}};
  for (const std::vector<bool>& broken : std::vector<std::vector<bool>>{{true, false}, {false, true}, {true, true}}) {
    const auto check = [&](const auto& devices) {
      std::vector<std::atomic<int>> runs(plan.size()), blocks(2);
      const int first = devices[0].id().index;
      const ParallelModel model{[&](Context auto& ctx, View<const float, 1>) {
                                  const auto device = static_cast<std::size_t>(ctx.device().id().index - first);
                                  ++runs[ctx.rank()];
                                  ++blocks[device];
                                  if (broken[device]) throw fanout::DeviceError("lost");
                                },
                                devices, Options{.split = dealt_test::Blocks{plan}}};
      try {
        model(dealt_test::ascending(90));
      } catch (const fanout::ReplicaError& error) {
        CHECK(error.failures().size() == (broken[0] && broken[1] ? plan.size() : 1));
      }
      for (const std::atomic<int>& each : runs) CHECK(each == 1);
      for (const std::size_t i : {0U, 1U}) CHECK((!broken[i] || broken[1 - i] || blocks[i] <= 1));
    };
    check(simulated_devices({{}, {}}));
    check(host_devices(2));
  }
}

TEST_CASE("50,000 blocks are dealt in a moment") {
  constexpr std::size_t blocks = 50'000;
  const Plan plan(blocks, [](std::size_t i) { return fanout::Shard{.rows = {i, i + 1}, .device = i % 2}; });
  std::atomic<std::size_t> runs{0};
  const ParallelModel model{[&runs](View<const float, 1>) { ++runs; }, host_devices(2),
                            Options{.split = dealt_test::Blocks{plan}}};
  const Tensor<float, 1> x(blocks);
  const auto began = std::chrono::steady_clock::now();
  model(x);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));  // less than 0.1 s
  CHECK(runs == blocks);
}

TEST_CASE("what may not run on any device runs where it was planned") {
  struct Counts {
    int calls = 0;
    auto forward(View<const float, 1> x) {
      ++calls;
      return fanout::psum(x.size());
    }
  };
  const auto x = dealt_test::ascending(1000);
  const auto options = Options{.split = DealtSplit{}};
  const ParallelModel counting{Counts{}, host_devices(2), options};
  CHECK(counting(x) == 1000);
  CHECK(counting.replica(0).model().calls == 14);
  CHECK(counting.replica(1).model().calls == 14);
  const ParallelModel meeting{[](Context auto& ctx, View<const float, 1> part) {
                                Tensor<double, 1> sum{1};
                                sum[0] = static_cast<double>(part.size());
                                ctx.communicator().all_reduce(sum);
                                return fanout::first(sum[0]);
                              },
                              host_devices(2), options};
  CHECK(meeting(x) == 1000);
}

TEST_CASE("asynchronous dealt calls on host devices give what synchronous ones give, several at once") {
  const auto x = dealt_test::ascending(1001);
  const ParallelModel model{dealt_test::Doubles{}, host_devices(3), Options{.split = DealtSplit{}}};
  const auto expected = model(x);
  for (int round = 0; round < 20; ++round) {
    std::vector<fanout::Pending<std::remove_const_t<decltype(expected)>>> pending;
    for (int call = 0; call < 5; ++call) pending.push_back(model.async(x));
    const auto between = model(x);
    CHECK(between == expected);
    for (auto& each : pending) CHECK(each.get() == expected);
  }
}

TEST_CASE("an asynchronous dealt call that is late tells its late shards, and throws Timeout") {
  std::atomic<int> told{0};
  const ParallelModel model{
      [](View<const float, 1> x) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        return fanout::psum(x.size());
      },
      host_devices(2),
      Options{
          .split = DealtSplit{}, .deadline = std::chrono::milliseconds(1), .late = [&told](const auto&) { ++told; }}};
  auto pending = model.async(dealt_test::ascending(100));
  CHECK_THROWS_AS(pending.get(), fanout::Timeout);
  CHECK(told > 0);
}

TEST_CASE("batches of few rows, and of none, are not dealt") {
  const ParallelModel model{dealt_test::Doubles{}, host_devices(4), Options{.split = DealtSplit{}}};
  for (const std::size_t rows : {0U, 1U, 2U, 3U, 7U, 8U, 9U}) {
    CAPTURE(rows);
    CHECK(model.plan(rows).is_dealt() == (rows >= 8));
    CHECK(std::get<1>(model(dealt_test::ascending(rows))) == rows);
  }
}

TEST_CASE("a device that the shares give no rows takes over no blocks") {
  const std::vector<SimulatedDeviceOptions> options{{.rows_per_second = 1e6},
                                                    {.rows_per_second = 1e6, .launch = std::chrono::seconds(1)}};
  const auto time_of_last = [&](const auto& shares) {
    const auto devices = simulated_devices(options);
    const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); }, devices,
                              Options{.output = dealt_test::on_host, .split = DealtSplit{shares}}};
    const Tensor<float, 1> x(10'000);
    for (int i = 0; i < 19; ++i) static_cast<void>(model(x));
    const auto before = devices[0].time();
    CHECK(model(x) == 10'000);
    return devices[0].time() - before;
  };
  CHECK(time_of_last(fanout::WeightedSplit{1, 0}) == 10'000'000);
  CHECK(time_of_last(MeasuredSplit{}) <= 10'100'000);
}

TEST_CASE("a device that is left out takes over no blocks") {
  const auto devices = simulated_devices({{}, {.fail_at = 1, .failures = SIZE_MAX}, {}});
  const ParallelModel model{
      [](View<const float, 1> x) { return fanout::psum(x.size()); }, devices,
      Options{
          .output = dealt_test::on_host, .split = DealtSplit{}, .measure = true, .retry = fanout::Retry{.times = 1}}};
  const Tensor<float, 1> x(3000);
  for (int i = 0; i < 6; ++i) CHECK(model(x) == 3000);
  CHECK(model.report().devices()[1].left_out);
  CHECK(model.report().devices()[1].failures == 2);
}

TEST_CASE("a policy whose plan covers too few rows is refused in a DealtSplit, too") {
  const auto half = [](std::size_t rows, std::size_t) { return Plan{{{0, rows / 2}, 0}}; };
  const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); }, fanout::host_devices(2),
                            Options{.split = DealtSplit{half}}};
  CHECK_THROWS_AS(static_cast<void>(model(Tensor<float, 1>(100))), fanout::InvalidArgument);
}

TEST_CASE("blocks are dealt at the end of simulated time, too") {
  const auto devices = simulated_devices({{.rows_per_second = 1e-300, .memory = 6000}, {.rows_per_second = 1e-300}});
  const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); }, devices,
                            Options{.output = dealt_test::on_host, .shrink_on_out_of_memory = true}};
  CHECK(model(Tensor<float, 1>(4000)) == 4000);
}
