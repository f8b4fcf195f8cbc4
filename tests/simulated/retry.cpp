// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shards that run again on other devices, since their own one failed.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/observe.hpp>
#include <fanout/simulated.hpp>

#include "support/message_of.hpp"
#include "support/skip.hpp"

using fanout::Context;
using fanout::DealtSplit;
using fanout::DeviceError;
using fanout::DeviceId;
using fanout::EvenSplit;
using fanout::InvalidArgument;
using fanout::InvalidDeviceId;
using fanout::MeasuredSplit;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::ReplicaError;
using fanout::Retry;
using fanout::simulated_devices;
using fanout::SimulatedDeviceOptions;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

namespace retry_test {

const DeviceId on_host{.kind = "host", .index = 0};

struct Doubles {
  Tensor<float, 1> factor = [] {
    Tensor<float, 1> two(1);
    two[0] = 2;
    return two;
  }();
  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    auto scratch = fanout::empty<float>(ctx, x.size());
    float sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      scratch[i] = factor(0) * x[i];
      y[i] = scratch[i];
      sum += 0.1F * x[i];
    }
    return std::tuple(y, fanout::psum(x.size()), fanout::psum(sum), std::string("x"));
  }
};

Tensor<float, 1> ascending(std::size_t rows) {
  Tensor<float, 1> x(rows);
  std::iota(x.begin(), x.end(), 0.0F);
  return x;
}

}  // namespace retry_test

TEST_CASE("a shard whose device fails runs again on another device") {
  const auto x = retry_test::ascending(31);
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].fail_at = 2;
  const ParallelModel model{retry_test::Doubles{}, simulated_devices(options),
                            Options{.output = retry_test::on_host, .measure = true, .retry = Retry{.times = 1}}};
  const auto expected = model(x);
  CHECK(model.report().devices()[1].failures == 0);
  for (int call = 0; call < 3; ++call) {
    const auto result = model(x);
    CHECK(std::get<0>(result) == std::get<0>(expected));
    CHECK(std::get<1>(result) == 31);
    CHECK(std::get<2>(result) == std::get<2>(expected));
  }
  const fanout::Report report = model.report();
  CHECK(report.calls() == 4);
  CHECK(report.failed_calls() == 0);
  CHECK(report.devices()[1].failures == 1);
  CHECK_FALSE(report.devices()[1].left_out);
  CHECK(report.devices()[1].shards == 3);
  CHECK(report.devices()[2].shards + report.devices()[0].shards == 9);
}

TEST_CASE("a device that has failed twice gets no rows until it is readmitted") {
  const auto x = retry_test::ascending(30);
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].fail_at = 1;
  options[1].failures = SIZE_MAX;
  ParallelModel model{retry_test::Doubles{}, simulated_devices(options),
                      Options{.output = retry_test::on_host, .measure = true, .retry = Retry{.times = 1}}};
  const Plan even = EvenSplit{}(30, 3);
  CHECK(model.plan(30) == even);
  model(x);
  CHECK(model.plan(30) == even);
  model(x);
  const Plan without{{{0, 15}, 0}, {{15, 30}, 2}};
  CHECK(model.plan(30) == without);
  CHECK(std::get<1>(model(x)) == 30);
  CHECK(model.report().devices()[1].left_out);
  CHECK(model.report().devices()[1].failures == 2);
  CHECK(says(to_string(model.report()), "sim", "failed in 2 shards, and gets no rows until readmit()"));
  model.readmit(1);
  CHECK(model.plan(30) == even);
  CHECK(model.report().devices()[1].failures == 0);
  CHECK(says(message_of<InvalidDeviceId>([&] { model.readmit(3); }), "readmit", "below 3", "3"));
}

TEST_CASE("the last device is never left out") {
  std::vector<SimulatedDeviceOptions> options(2);
  for (SimulatedDeviceOptions& each : options) {
    each.fail_at = 1;
    each.failures = 4;
  }
  const ParallelModel model{retry_test::Doubles{}, simulated_devices(options),
                            Options{.output = retry_test::on_host, .retry = Retry{.times = 1}}};
  const auto x = retry_test::ascending(10);
  std::size_t failed = 0;
  for (int call = 0; call < 12; ++call) {
    try {
      CHECK(std::get<1>(model(x)) == 10);
    } catch (const ReplicaError& error) {
      CHECK(error.get_if<DeviceError>() != nullptr);
      ++failed;
    }
  }
  CHECK(failed > 0);
  CHECK(failed < 8);
  CHECK(std::get<1>(model(x)) == 10);
}

TEST_CASE("a failure in the last try is counted, too") {
  const ParallelModel model{retry_test::Doubles{}, simulated_devices({{.fail_at = 2}, {.fail_at = 1}}),
                            Options{.measure = true, .retry = Retry{.times = 1}}};
  CHECK_THROWS_AS(model(retry_test::ascending(8)), ReplicaError);
  CHECK(model.report().devices()[0].failures == 1);
  CHECK(model.report().devices()[1].failures == 1);
}

TEST_CASE("an exception of the model itself runs no shard again") {
  int calls = 0;
  const ParallelModel model{[&calls](View<const float, 1>) -> int {
                              ++calls;
                              throw fanout::Error("the model's own");
                            },
                            simulated_devices(std::vector<SimulatedDeviceOptions>(2)),
                            Options{.retry = Retry{.times = 3}}};
  CHECK(says(message_of<ReplicaError>([&] { model(retry_test::ascending(10)); }), "the model's own"));
  CHECK(calls == 2);
}

TEST_CASE("where a shard may not run again, the error says why") {
  const auto x = retry_test::ascending(10);
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].fail_at = 1;
  const Options retry{.output = retry_test::on_host, .retry = Retry{.times = 1}};
  const auto devices = [&] { return simulated_devices(options); };
  SUBCASE("a forward that is not const") {
    struct Counts {
      int calls = 0;
      int forward(View<const float, 1>) { return ++calls; }
    };
    const ParallelModel model{Counts{}, devices(), Options{.measure = true, .retry = Retry{.times = 3}}};
    CHECK(model.report().devices().size() == 2);  // also before the first call
    CHECK(says(message_of<ReplicaError>([&] { model(x); }), "simulated failure", "since forward is not const"));
    CHECK(model.report().devices()[1].failures == 1);
    CHECK_FALSE(model.report().devices()[1].left_out);
    CHECK(model(x).size() == 2);
  }
  SUBCASE("collectives") {
    const ParallelModel model{[](Context auto& ctx, View<const float, 1>) {
                                Tensor<double, 1> one{1};
                                one[0] = 1;
                                ctx.communicator().all_reduce(one);
                                return fanout::first(one[0]);
                              },
                              devices(), retry};
    CHECK(says(message_of<ReplicaError>([&] { model(x); }), "since forward has collectives"));
    CHECK(model(x) == 2);
  }
  SUBCASE("an asynchronous call with collectives") {
    const ParallelModel model{[](Context auto& ctx, View<const float, 1>) {
                                ctx.communicator().barrier();
                                return 1;
                              },
                              devices(), retry};
    auto pending = model.async(x);
    CHECK(says(message_of<ReplicaError>([&] { pending.get(); }), "since forward has collectives"));
  }
  SUBCASE("an asynchronous call of a model that an earlier one changes") {
    struct Counts {
      int calls = 0;
      int forward(View<const float, 1>) const { return calls; }
      int forward(View<const float, 1>, int) { return ++calls; }
    };
    options[1].failures = 2;
    const ParallelModel model{fanout::factory([] { return Counts{}; }), devices(), retry};
    auto changes = model.async(x, 1);
    auto reads = model.async(x);
    CHECK(says(message_of<ReplicaError>([&] { changes.get(); }), "since forward is not const"));
    CHECK(says(message_of<ReplicaError>([&] { reads.get(); }), "since the call was asynchronous"));
    CHECK(model.async(x).get() == fanout::tensor<int>({1, 1}));
  }
  SUBCASE("an argument of an asynchronous call that is inout") {
    const ParallelModel model{[](std::span<float>) -> int { throw DeviceError("broken"); }, fanout::host_devices(2),
                              retry};
    std::vector<float> state(10);
    auto pending = model.async(fanout::inout(state));
    CHECK(says(message_of<ReplicaError>([&] { pending.get(); }), "broken", "since an argument is inout()"));
  }
  SUBCASE("without Options::retry it says nothing of it, and counts nothing") {
    const ParallelModel model{retry_test::Doubles{}, devices(), Options{.measure = true}};
    CHECK(message_of<ReplicaError>([&] { model(x); }).find("again") == std::string::npos);
    CHECK(model.report().devices()[1].failures == 0);
    CHECK(model.report().failed_calls() == 1);
  }
}

TEST_CASE("the result of an asynchronous call may be taken after its model, also if a device failed") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].fail_at = 1;
  const auto x = retry_test::ascending(10);
  for (const int times : {0, 1}) {
    auto pending = [&] {
      const ParallelModel model{
          retry_test::Doubles{}, simulated_devices(options),
          Options{.output = retry_test::on_host, .retry = Retry{.times = times}, .shrink_on_out_of_memory = true}};
      return model.async(x);
    }();
    if (times == 0)
      CHECK(says(message_of<ReplicaError>([&] { pending.get(); }), "simulated failure"));
    else
      CHECK(std::get<1>(pending.get()) == 10);
  }
}

TEST_CASE("shards of an asynchronous call run again, too, with the same results") {
  const auto x = retry_test::ascending(31);
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].fail_at = 2;
  options[1].failures = SIZE_MAX;
  const ParallelModel model{retry_test::Doubles{}, simulated_devices(options),
                            Options{.output = retry_test::on_host, .measure = true, .retry = Retry{.times = 1}}};
  const auto expected = model.async(x).get();
  std::vector<fanout::Pending<std::remove_const_t<decltype(expected)>>> pending;
  for (int call = 0; call < 4; ++call) pending.push_back(model.async(retry_test::ascending(31)));
  for (auto& each : pending) {
    const auto result = each.get();
    CHECK(std::get<0>(result) == std::get<0>(expected));
    CHECK(std::get<1>(result) == 31);
    CHECK(std::get<2>(result) == std::get<2>(expected));
  }
  const fanout::Report report = model.report();
  CHECK(report.calls() == 5);
  CHECK(report.failed_calls() == 0);
  CHECK(report.devices()[1].failures == 2);
  CHECK(report.devices()[1].left_out);
}

TEST_CASE(
    "an asynchronous call has the random numbers of its place among the calls, also if its shards may run again") {
  const auto draws = [](const Options& with) {
    const ParallelModel model{[](Context auto& ctx, View<const float, 1> x) {
                                auto y = fanout::output<double>(ctx);
                                for (std::size_t i = 0; i < x.size(); ++i) y[i] = ctx.random(i).uniform();
                                return y;
                              },
                              fanout::host_devices(2), with};
    const auto x = retry_test::ascending(7);
    auto first = model.async(x);
    auto second = model.async(x);
    const auto third = model(x);
    return std::tuple{first.get(), second.get(), third};
  };
  CHECK(draws({.retry = Retry{.times = 1}}) == draws({}));
}

TEST_CASE("an asynchronous call may run again that returns nothing, moves its argument, or fails each time") {
  std::vector<SimulatedDeviceOptions> options(2);
  options[1].fail_at = 1;
  options[1].failures = 3;
  int rows = 0;
  const ParallelModel model{
      [&rows](View<const float, 1> x, const std::string& text) { rows += static_cast<int>(x.size() + text.size()); },
      simulated_devices(options), Options{.retry = Retry{.times = 1}}};
  model.async(retry_test::ascending(10), fanout::broadcast(std::string("ab"))).get();
  CHECK(rows == 21);  // seven of them in the shard whose device failed
  { auto dropped = model.async(retry_test::ascending(10), fanout::broadcast(std::string())); }
  CHECK(rows == 36);

  for (SimulatedDeviceOptions& each : options) {
    each.fail_at = 1;
    each.failures = SIZE_MAX;
  }
  const ParallelModel broken{retry_test::Doubles{}, simulated_devices(options), Options{.retry = Retry{.times = 2}}};
  auto pending = broken.async(retry_test::ascending(10));
  const auto error = [&pending] {
    try {
      pending.get();
    } catch (const ReplicaError& thrown) {
      return thrown;
    }
    throw 0;
  }();
  CHECK(error.get_if<DeviceError>() != nullptr);
}

TEST_CASE("the deadline of an asynchronous call counts from when it was made, also if its shards may run again") {
  std::atomic<bool> started{false};
  const auto devices = fanout::host_devices(1);
  const ParallelModel blocker{[&started](View<const float, 1>) {
                                started = true;
                                std::this_thread::sleep_for(std::chrono::milliseconds(60));
                              },
                              devices};
  const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); }, devices,
                            Options{.deadline = std::chrono::milliseconds(20), .retry = Retry{.times = 1}}};
  const auto x = retry_test::ascending(10);
  auto blocks = blocker.async(x);
  for (int i = 0; i < 2000 && !started; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!started) return fanout_test::skip("the device has no thread");
  auto late = model.async(x);  // begins behind the other one
  blocks.get();
  CHECK_THROWS_AS(late.get(), fanout::Timeout);
}

TEST_CASE("update() waits for asynchronous calls whose shards may run again") {
  ParallelModel model{retry_test::Doubles{}, fanout::host_devices(2), Options{.retry = Retry{.times = 1}}};
  const auto x = retry_test::ascending(10);
  std::vector<fanout::Pending<decltype(model(x))>> pending;
  for (int call = 0; call < 8; ++call) pending.push_back(model.async(x));
  model.update([](retry_test::Doubles& doubles) { doubles.factor[0] = 3; });
  for (auto& each : pending) CHECK(std::get<0>(each.get())[4] == 8);
  CHECK(std::get<0>(model.async(x).get())[4] == 12);
}

TEST_CASE("a negative number of tries is refused") {
  CHECK(says(message_of<InvalidArgument>([] {
               ParallelModel{retry_test::Doubles{}, fanout::host_devices(1), Options{.retry = Retry{.times = -1}}};
             }),
             "Options::retry"));
}

TEST_CASE("Options::progress is told of each shard, and its exceptions are ignored") {
  std::vector<SimulatedDeviceOptions> options(3);
  options[1].fail_at = 1;
  std::vector<fanout::Progress> seen;
  const ParallelModel model{retry_test::Doubles{}, simulated_devices(options),
                            Options{.output = retry_test::on_host,
                                    .progress =
                                        [&seen](const fanout::Progress& progress) {
                                          seen.push_back(progress);
                                          throw 1;
                                        },
                                    .retry = Retry{.times = 1}}};
  CHECK(std::get<1>(model(retry_test::ascending(30))) == 30);
  REQUIRE(seen.size() == 3);  // not of the shard that failed, but of it when it ran again
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CHECK(seen[i].rows_done == 10 * (i + 1));
    CHECK(seen[i].rows == 30);
  }
  CHECK(model.report().calls() == 1);
}

TEST_CASE("300 random runs in which devices fail and are lost give complete results, right to the last bit") {
  std::mt19937_64 random(11);
  for (int run = 0; run < 300; ++run) {
    CAPTURE(run);
    const std::size_t count = 2 + random() % 5;
    std::vector<SimulatedDeviceOptions> options(count);
    for (std::size_t i = 0; i + 1 < count; ++i) {  // the last one never fails
      options[i].rows_per_second = 1e5 * static_cast<double>(1 + random() % 100);
      if (random() % 2 == 0) continue;
      options[i].fail_at = 1 + random() % 12;
      options[i].failures = random() % 3 == 0 ? SIZE_MAX : 1 + random() % 3;
    }
    Options settings{.output = retry_test::on_host, .retry = Retry{.times = static_cast<int>(count)}};
    if (random() % 2 == 0) settings.split = DealtSplit{};
    const auto x = retry_test::ascending(1 + random() % 500);
    const ParallelModel model{retry_test::Doubles{}, simulated_devices(options), settings};
    for (int call = 0; call < 4; ++call) {
      const Plan plan = model.plan(x.size());
      const auto [y, rows, sum, text] = model(x);
      CHECK(rows == x.size());
      for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(y[i] == 2 * x[i]);
      const ParallelModel sound{retry_test::Doubles{}, fanout::host_devices(static_cast<int>(count)),
                                Options{.split = [&plan](std::size_t rows_now, std::size_t devices) {
                                  return rows_now == 0 ? EvenSplit{}(0, devices) : plan;
                                }}};
      CHECK(sum == std::get<2>(sound(x)));
      CHECK(text.size() == plan.size());
    }
  }
}

TEST_CASE("a shard that writes an inout argument, also in a tuple or a dict, does not run again") {
  std::atomic<int> forwards{0};
  const auto add_one = [&forwards](View<float, 1> x, std::size_t rank) {
    for (float& each : x) each += 1;
    if (rank == 1 && forwards++ == 0) throw DeviceError("lost");
  };
  const auto check = [&](const auto& forward, const auto& wrap) {
    forwards = 0;
    const ParallelModel model{forward, fanout::host_devices(2), Options{.retry = Retry{.times = 1}}};
    Tensor<float, 1> x(8);
    const std::string message = message_of<ReplicaError>([&] { model(wrap(fanout::inout(x))); });
    CHECK(says(message, "not run again on another device, since an argument is inout()"));
    for (const float each : x) CHECK(each == 1);
  };
  using namespace fanout::literals;
  check([&](Context auto& ctx, View<float, 1> x) { add_one(x, ctx.rank()); }, [](auto x) { return x; });
  check([&](Context auto& ctx, const auto& x) { add_one(std::get<0>(x), ctx.rank()); },
        [](auto x) { return std::tuple{x}; });
  check([&](Context auto& ctx, const auto& x) { add_one(x["x"_k], ctx.rank()); },
        [](auto x) { return fanout::dict("x"_k = x); });
}

TEST_CASE("a call in which nothing fails does not count its tries") {
  const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); }, simulated_devices({{}, {}}),
                            Options{.output = retry_test::on_host, .measure = true, .retry = Retry{.times = INT_MAX}}};
  CHECK(model(Tensor<float, 1>(40)) == 40);
}

TEST_CASE("a shard that is late in its second run is told to Options::late") {
  std::atomic<int> forwards{0};
  std::atomic<int> told{0};
  const ParallelModel model{[&](Context auto& ctx, View<const float, 1> x) {
                              if (ctx.rank() == 1) {
                                if (forwards++ == 0) throw DeviceError("lost");
                                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                              }
                              return fanout::psum(x.size());
                            },
                            fanout::host_devices(2),
                            Options{.deadline = std::chrono::milliseconds(50),
                                    .late = [&told](const fanout::LateShard&) { ++told; },
                                    .retry = Retry{.times = 1}}};
  CHECK_THROWS_AS(static_cast<void>(model(Tensor<float, 1>(40))), fanout::Timeout);
  CHECK(told >= 1);
}

TEST_CASE("a shard that is late in its first run and runs again is told to Options::late once") {
  std::atomic<int> forwards{0};
  std::atomic<int> told{0};
  const ParallelModel model{[&](View<const float, 1> x) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(30));
                              if (forwards++ == 0) throw DeviceError("lost");
                              return fanout::psum(x.size());
                            },
                            simulated_devices({{}, {}}),
                            Options{.deadline = std::chrono::milliseconds(10),
                                    .late = [&told](const fanout::LateShard&) { ++told; },
                                    .retry = Retry{.times = 1}}};
  CHECK_THROWS_AS(static_cast<void>(model(Tensor<float, 1>(40))), fanout::Timeout);
  CHECK(forwards == 3);
  CHECK(told == 2);
}

TEST_CASE("the report counts the bytes of the run that succeeded") {
  const ParallelModel model{[](View<const float, 1> x) { return fanout::psum(x.size()); },
                            simulated_devices({{}, {.fail_at = 1}, {}}),
                            Options{.output = retry_test::on_host, .measure = true, .retry = Retry{.times = 1}}};
  CHECK(model(Tensor<float, 1>(3000)) == 3000);
  std::uint64_t bytes = 0;
  for (const fanout::DeviceReport& device : model.report().devices()) {
    CHECK(device.bytes_in == device.rows * sizeof(float));
    bytes += device.bytes_in;
  }
  CHECK(bytes == 3000 * sizeof(float));
}
