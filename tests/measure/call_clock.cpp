// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
//
// What measured calls of every kind tell. On devices whose clock only the test advances, the times are exact.
#include <fanout/measure/call_clock.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#include <fanout/plan/dealt_split.hpp>
#include <fanout/plan/measured_split.hpp>
#include <fanout/simulated.hpp>

#include "device/clock_device.hpp"
#include "device/remote_device.hpp"
#include "device/toy_device.hpp"
#include "measure/recorded_calls.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::ShardTimes;
using fanout::Tensor;
using fanout::View;
using fanout_test::clock_devices;
using fanout_test::ClockDevice;
using fanout_test::RecordedCall;
using fanout_test::RecordedCalls;
using fanout_test::remote_devices;
using fanout_test::RemoteMemory;
using namespace std::chrono_literals;

namespace {

using Rows = std::span<const int>;

/// Takes 10 ns a row, and leaves 5 more ns a row to the device.
struct Slow {
  int forward(Context auto& ctx, Rows rows) const {
    const auto n = static_cast<std::int64_t>(rows.size());
    ctx.device().time_of_device() += 10 * n;
    ctx.device().left() += 5 * n;
    if (!rows.empty() && rows[0] < 0) throw std::runtime_error("negative");
    return static_cast<int>(n);
  }
};

/// Each call takes 4 ns of the thread.
struct SlowSum {
  int operator()(int a, int b) const {
    ClockDevice::time_of_thread() += 4;
    return a + b;
  }
};

/// Pages of three rows, which devices take in turn. To plan takes 7 ns.
struct Pages {
  Plan operator()(std::size_t rows, std::size_t devices) const {
    ClockDevice::time_of_thread() += 7;
    Plan plan;
    for (std::size_t begin = 0; begin < rows; begin += 3) {
      plan.add({.rows = {begin, begin + 3 < rows ? begin + 3 : rows}, .device = plan.size() % devices});
    }
    if (rows == 0) plan.add({.rows = {}, .device = 0});
    return plan;
  }
};

bool is_ordered(const ShardTimes& shard) {
  return shard.began <= shard.forward && shard.forward <= shard.returned && shard.returned <= shard.ended;
}

/// What holds for a call without failures on the clock of the process.
void check_real(const RecordedCall& call) {
  CHECK_FALSE(call.times.failed);
  CHECK_FALSE(call.times.own_clock);
  CHECK(call.times.began > 0);
  CHECK(call.times.began + call.times.ended <= fanout::detail::Clock::now());
  CHECK(0 <= call.times.planned);
  CHECK(call.times.planned <= call.times.joined);
  CHECK(call.times.joined <= call.times.ended);
  for (const ShardTimes& shard : call.shards) {
    CHECK(is_ordered(shard));
    CHECK(shard.thread != 0);
    CHECK_FALSE(shard.failed);
    CHECK(call.times.planned <= shard.began);
    CHECK(shard.ended <= call.times.joined);
  }
}

}  // namespace

TEST_CASE("a call tells exactly when it began, planned, ran its shards, joined and ended") {
  const ParallelModel model{Slow{}, clock_devices(2), Options{.split = Pages{}}};
  ClockDevice::all_at(1000);
  clock_devices(2).visit(1, [](const auto& device) { device.time_of_device() = 1100; });  // it is busy until then
  const RecordedCalls recorded;
  const std::vector<int> rows(8, 1);
  CHECK(model(rows).size() == 3);
  REQUIRE(recorded.size() == 1);
  const RecordedCall call = recorded.last();
  CHECK(call.plan == Plan{{{0, 3}, 0}, {{3, 6}, 1}, {{6, 8}, 0}});
  CHECK(call.devices == std::vector<fanout::DeviceId>{{"clock", 0}, {"clock", 1}});
  CHECK(call.times.began == 1000);
  CHECK(call.times.planned == 7);
  CHECK(call.times.own_clock);
  CHECK_FALSE(call.times.asynchronous);
  CHECK_FALSE(call.times.failed);
  CHECK(call.times.thread == fanout::detail::thread_number());

  REQUIRE(call.shards.size() == 3);
  const auto check = [&call](std::size_t i, std::int64_t began, std::int64_t returned, std::int64_t ended) {
    CAPTURE(i);
    CHECK(call.shards[i].began == began);
    CHECK(call.shards[i].forward == began);
    CHECK(call.shards[i].returned == returned);
    CHECK(call.shards[i].ended == ended);
    CHECK(call.shards[i].thread == call.times.thread);
  };
  // The device's clock still showed 1000: no shard of it waits for the plan.
  check(0, 0, 30, 45);
  check(1, 100, 130, 145);
  check(2, 45, 65, 75);
  CHECK(call.times.joined == 145);  // the last shard, though the thread's time stands still
  CHECK(call.times.ended == 145);
  CHECK(call.times.model.find("Slow") != std::string::npos);
  CHECK(call.model == fanout::detail::type_name<Slow>());
}

TEST_CASE("times on the clock of the process count from the beginning of the call") {
  // A plan that takes a millisecond shows if shards count from another time than the call does.
  const auto slowly = [](std::size_t rows, std::size_t devices) {
    std::this_thread::sleep_for(1ms);
    return fanout::EvenSplit{}(rows, devices);
  };
  const ParallelModel model{[](Rows rows) { return static_cast<int>(rows.size()); }, host_devices(2),
                            Options{.split = slowly}};
  const RecordedCalls recorded;
  model(std::vector<int>(10));
  const RecordedCall call = recorded.last();
  check_real(call);
  CHECK(call.times.planned >= 1'000'000);
}

TEST_CASE("the outer call of an asynchronous one is that which made it, whichever thread makes it as a whole") {
  const auto devices = fanout::simulated_devices({{}, {}});  // without threads: they run what is asked for
  const ParallelModel inner{[](Rows rows) { return fanout::psum(rows.size()); }, devices,
                            Options{.split = fanout::DealtSplit{}}};
  std::vector<fanout::Pending<std::size_t>> pending;
  pending.push_back(inner.async(std::vector<int>(40)));
  const ParallelModel outer{[&](Rows) {
                              pending[0].wait();
                              pending.push_back(inner.async(std::vector<int>(40)));
                            },
                            host_devices(1)};
  const RecordedCalls recorded;
  outer(std::vector<int>(1));
  CHECK(pending[1].get() == 40);
  const auto calls = recorded.calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].times.outer == 0);
  CHECK(calls[1].times.outer == calls[0].times.id);
}

TEST_CASE("calls have numbers of their own, and calls of nobody's have no outer call") {
  const ParallelModel model{[](Rows rows) { return static_cast<int>(rows.size()); }, host_devices(1)};
  const RecordedCalls recorded;
  for (int i = 0; i < 3; ++i) model(std::vector<int>(4));
  const std::vector<RecordedCall> calls = recorded.calls();
  REQUIRE(calls.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(calls[i].times.number == i);
    CHECK(calls[i].times.id == calls[0].times.id + i);
    CHECK(calls[i].times.id != 0);
    CHECK(calls[i].times.outer == 0);
  }
}

TEST_CASE("nothing is measured if nobody asked") {
  const ParallelModel model{[](Rows rows) { return static_cast<int>(rows.size()); }, host_devices(2)};
  const std::uint64_t before = fanout::detail::measured_calls.load(fanout::detail::MemoryOrder::relaxed);
  model(std::vector<int>(4));
  model.async(std::vector<int>(4)).get();
  CHECK(fanout::detail::measured_calls.load(fanout::detail::MemoryOrder::relaxed) == before);
}

TEST_CASE("a nested call tells which shard of which call made it") {
  const ParallelModel inner{[](Rows rows) { return fanout::psum(static_cast<int>(rows.size())); }, host_devices(2)};
  const ParallelModel outer{[&inner](Rows rows) { return inner(rows) + inner.async(std::vector<int>(4)).get(); },
                            host_devices(2)};
  const RecordedCalls recorded;
  outer(std::vector<int>(10));
  const std::vector<RecordedCall> calls = recorded.calls();
  REQUIRE(calls.size() == 5);
  const RecordedCall& whole = calls.back();  // ends last
  check_real(whole);
  CHECK(whole.times.outer == 0);
  std::size_t made_by[2] = {0, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    check_real(calls[i]);
    CHECK(calls[i].times.outer == whole.times.id);
    REQUIRE(calls[i].times.outer_shard < 2);
    const ShardTimes& shard = whole.shards[calls[i].times.outer_shard];
    ++made_by[calls[i].times.outer_shard];
    CHECK(calls[i].times.thread == shard.thread);
    CHECK(whole.times.began + shard.forward <= calls[i].times.began);
  }
  CHECK(made_by[0] == 2);
  CHECK(made_by[1] == 2);
  // The thread is in no shard any more.
  inner(std::vector<int>(4));
  CHECK(recorded.last().times.outer == 0);
}

TEST_CASE("an asynchronous call ends when its result has been gathered, and tells how long it was idle before") {
  ClockDevice::all_at(500);
  const ParallelModel model{
      [](Context auto& ctx, Rows rows) { return fanout::reduce(Slow{}.forward(ctx, rows), SlowSum{}); },
      clock_devices(2), Options{.split = Pages{}}};
  ClockDevice::all_at(500);
  const RecordedCalls recorded;
  auto pending = model.async(std::vector<int>(6, 1));
  pending.wait();
  CHECK(recorded.size() == 0);
  ClockDevice::time_of_thread() = 1500;
  std::thread([&pending] { CHECK(pending.get() == 6); }).join();
  REQUIRE(recorded.size() == 1);
  const RecordedCall call = recorded.last();
  CHECK(call.times.asynchronous);
  CHECK_FALSE(call.times.failed);
  CHECK(call.times.gatherer != 0);
  CHECK(call.times.gatherer != call.times.thread);
  CHECK(call.times.joined == 45);
  CHECK(call.times.idle == 1000 - 45);
  CHECK(call.times.ended == 1000 + 4);
}

TEST_CASE("an asynchronous call whose result is dropped ends with its last shard") {
  ClockDevice::all_at(500);
  const ParallelModel model{Slow{}, clock_devices(2), Options{.split = Pages{}}};
  ClockDevice::all_at(500);
  const RecordedCalls recorded;
  {
    const auto pending = model.async(std::vector<int>(6, 1));
    pending.wait();
    ClockDevice::time_of_thread() = 1500;
    CHECK(recorded.size() == 0);
  }
  REQUIRE(recorded.size() == 1);
  const RecordedCall call = recorded.last();
  CHECK(call.times.asynchronous);
  CHECK_FALSE(call.times.failed);
  CHECK(call.times.gatherer == 0);
  CHECK(call.times.idle == 0);
  CHECK(call.times.began == 500);
  CHECK(call.times.planned == 7);
  CHECK(call.shards[0].ended == 45);
  CHECK(call.shards[1].ended == 45);
  CHECK(call.times.joined == 45);
  CHECK(call.times.ended == 45);
}

TEST_CASE("an asynchronous call is told when its result is taken, also if its model has ended before") {
  const RecordedCalls recorded;
  const auto started = [](const auto& devices) {
    const ParallelModel model{[](Rows rows) { return fanout::psum(static_cast<int>(rows.size())); }, devices,
                              Options{.split = fanout::MeasuredSplit{}, .measure = true}};
    return model.async(std::vector<int>(10));
  };
  ClockDevice::all_at(500);
  auto pending = started(clock_devices(2));
  CHECK(recorded.size() == 0);
  ClockDevice::time_of_thread() = 700;
  CHECK(pending.get() == 10);
  REQUIRE(recorded.size() == 1);
  CHECK(recorded.last().times.ended == 200);
  CHECK(recorded.last().devices == std::vector<fanout::DeviceId>{{"clock", 0}, {"clock", 1}});
  { const auto dropped = started(host_devices(2)); }
  CHECK(recorded.size() == 2);
}

TEST_CASE("a call that fails tells so, and which shards failed") {
  const ParallelModel model{Slow{}, clock_devices(2), Options{.split = Pages{}}};
  const std::vector<int> rows{1, 1, 1, -1, 1, 1};
  for (const bool asynchronous : {false, true}) {
    CAPTURE(asynchronous);
    ClockDevice::all_at(0);
    const RecordedCalls recorded;
    if (asynchronous) {
      CHECK_THROWS_AS(model.async(rows).get(), fanout::ReplicaError);
    } else {
      CHECK_THROWS_AS(model(rows), fanout::ReplicaError);
    }
    REQUIRE(recorded.size() == 1);
    const RecordedCall call = recorded.last();
    CHECK(call.times.failed);
    CHECK(call.times.asynchronous == asynchronous);
    CHECK_FALSE(call.shards[0].failed);
    CHECK(call.shards[1].failed);
    CHECK(call.shards[0].ended == 45);
    CHECK(call.shards[1].returned == call.shards[1].ended);
    CHECK(call.shards[1].ended >= 30);
    // The model works afterwards, and so does the measuring.
    model(std::vector<int>(6, 1));
    CHECK_FALSE(recorded.last().times.failed);
    CHECK(recorded.last().times.outer == 0);
  }
}

TEST_CASE("a call inside of a catch block has not failed") {
  const ParallelModel model{[](Rows rows) { return static_cast<int>(rows.size()); }, host_devices(2)};
  const RecordedCalls recorded;
  struct Calls {
    const std::function<void()> f;
    ~Calls() { f(); }
  };
  try {
    const Calls calls{[&model] { model(std::vector<int>(4)); }};  // called while an exception is in flight
    throw std::runtime_error("other");
  } catch (const std::runtime_error&) {
    model(std::vector<int>(4));
  }
  auto pending = model.async(std::vector<int>(4));
  try {
    const Calls takes{[&pending] { pending.get(); }};
    throw std::runtime_error("other");
  } catch (const std::runtime_error&) {
  }
  REQUIRE(recorded.size() == 3);
  for (const RecordedCall& call : recorded.calls()) CHECK_FALSE(call.times.failed);
}

TEST_CASE("a call that cannot be planned is not told") {
  const ParallelModel model{[](Rows a, Rows b) { return static_cast<int>(a.size() + b.size()); }, host_devices(2)};
  const RecordedCalls recorded;
  CHECK_THROWS_AS(model(std::vector<int>(3), std::vector<int>(4)), fanout::ShapeMismatch);
  CHECK_THROWS_AS(model.async(std::vector<int>(3), std::vector<int>(4)).get(), fanout::ShapeMismatch);
  CHECK(recorded.size() == 0);
}

TEST_CASE("calls without rows are measured") {
  const ParallelModel model{[](int x) { return x; }, host_devices(2)};
  const RecordedCalls recorded;
  model(3);
  check_real(recorded.last());
  CHECK(recorded.last().plan == Plan{{{0, 0}, 0}});
  model(fanout::on_all(), 3);
  check_real(recorded.last());
  CHECK(recorded.last().plan.size() == 2);
  const ParallelModel none{[](Rows rows) { return static_cast<int>(rows.size()); }, host_devices(3)};
  none(std::vector<int>());
  check_real(recorded.last());
  CHECK(recorded.last().plan.rows() == 0);
}

TEST_CASE("a late call is measured, and counts as failed") {
  const ParallelModel model{[](Context auto& ctx, Rows rows) {
                              while (rows[0] < 0 && !ctx.stop_requested()) std::this_thread::yield();
                              if (rows[0] < 0) std::this_thread::sleep_for(2ms);
                              return rows[0];
                            },
                            host_devices(2), Options{.deadline = 20ms}};
  const RecordedCalls recorded;
  CHECK_THROWS_AS(model(std::vector<int>{1, -1}), fanout::Timeout);
  REQUIRE(recorded.size() == 1);
  const RecordedCall call = recorded.last();
  CHECK(call.times.failed);
  CHECK_FALSE(call.shards[0].failed);
  CHECK_FALSE(call.shards[1].failed);  // it was late, but returned
  CHECK(call.shards[1].ended >= 20'000'000);
  CHECK(is_ordered(call.shards[1]));
  CHECK(call.times.ended >= 20'000'000);
  model(std::vector<int>{1, 1});
  check_real(recorded.last());
}

namespace {

/// A tensor of floats that runs on any memory: each row is doubled.
struct Doubles {
  auto forward(Context auto& ctx, View<const float, 1> x) const {
    auto y = fanout::output<float>(ctx);
    const auto reach = [](auto* data, const fanout::MemorySpace& space) {
      return space == fanout::host_memory ? data : RemoteMemory::reach(data);
    };
    const float* const from = reach(x.data(), x.space());
    float* const to = reach(y.data(), View<float, 1>(y).space());
    for (std::size_t i = 0; i < x.size(); ++i) to[i] = 2 * from[i];
    return y;
  }
};

}  // namespace

TEST_CASE("bytes to and from the memories of devices are counted for the device that has the memory") {
  const Tensor<float, 1> x(10);
  const auto bytes = [](const RecordedCalls& recorded) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> all;
    for (const ShardTimes& shard : recorded.last().shards) all.emplace_back(shard.bytes_in, shard.bytes_out);
    return all;
  };
  using Bytes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  SUBCASE("results on the host") {
    const ParallelModel model{Doubles{}, remote_devices(2), Options{.output = fanout::DeviceId{"host"}}};
    const RecordedCalls recorded;
    model(x);
    CHECK(bytes(recorded) == Bytes{{20, 20}, {20, 20}});
    check_real(recorded.last());
    Tensor<float, 1> y(10);
    model.into(y)(x);
    CHECK(bytes(recorded) == Bytes{{20, 20}, {20, 20}});
    model.async(Tensor<float, 1>(10)).get();
    CHECK(bytes(recorded) == Bytes{{20, 20}, {20, 20}});
  }
  SUBCASE("results on the main device: from one device to another") {
    const ParallelModel model{Doubles{}, remote_devices(2)};
    const RecordedCalls recorded;
    model(x);
    CHECK(bytes(recorded) == Bytes{{20 + 20, 0}, {20, 20}});
  }
  SUBCASE("beside host devices, which have no memory of their own") {
    const ParallelModel model{Doubles{}, host_devices(1) | remote_devices(1)};
    const RecordedCalls recorded;
    model(x);
    CHECK(bytes(recorded) == Bytes{{0, 0}, {20, 20}});
  }
}
