// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>
#include <fanout/worker/registry.hpp>

#include "support/message_of.hpp"
#include "support/timeout_of.hpp"

using fanout::Context;
using fanout::host_devices;
using fanout::LateShard;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::Timeout;
using fanout_test::says;
using fanout_test::timeout_of;
using namespace std::chrono_literals;

namespace {

using Rows = std::span<const int>;

/// A sink that keeps what it is told.
struct Told {
  std::vector<LateShard> late;
  auto sink() {
    return [this](const LateShard& shard) { late.push_back(shard); };
  }
};

void until_stop(const Context auto& ctx) {
  while (!ctx.stop_requested()) std::this_thread::yield();
}
void a_little_longer() { std::this_thread::sleep_for(2ms); }

/// The shards whose rows are below zero go on until they are to stop.
struct Dawdler {
  auto forward(Context auto& ctx, Rows rows) const {
    if (!rows.empty() && rows[0] < 0) until_stop(ctx), a_little_longer();
    int sum = 0;
    for (const int row : rows) sum += row;
    auto out = fanout::output<int>(ctx);
    for (std::size_t i = 0; i < rows.size(); ++i) out[i] = rows[i];
    return std::tuple{out, fanout::pmean(static_cast<double>(sum) / static_cast<double>(rows.size()))};
  }
};
using Results = std::tuple<Tensor<int, 1>, double>;

/// Whether `f()` is true for once: on a machine with much else to do a shard may be late that should not be.
template <class F>
bool in_the_end(const F& f) {
  for (int i = 0; i < 50; ++i) {
    if (f()) return true;
  }
  return false;
}

/// Devices without threads: what is posted to them runs where somebody waits.
fanout::DeviceSet<fanout::HostDevice> without_threads(int count) {
  std::vector<fanout::HostDevice> devices;
  for (int i = 0; i < count; ++i) {
    devices.emplace_back(fanout::backend::registry().worker({.kind = "idle", .index = i}, {}, false));
  }
  return fanout::DeviceSet<fanout::HostDevice>(std::move(devices));
}

template <class Do>
struct Counts {
  Do forward_with;
  fanout::Sum<int> calls;
  void operator()(auto& ctx, Rows rows) { forward_with(ctx, rows); }
};

/// Calls `f` with a const model that does this in its forward, with one that has replicas of its own, and with one
/// whose fields are combined.
template <class Do, class F>
void with_each_kind(const Do& forward, const F& f) {
  SUBCASE("const") {
    f([forward](auto& ctx, Rows rows) { forward(ctx, rows); });
  }
  SUBCASE("mutable") {
    f([forward](auto& ctx, Rows rows) mutable { forward(ctx, rows); });
  }
  SUBCASE("combined") { f(Counts<Do>{forward, 0}); }
}

using LateShards = std::remove_cvref_t<decltype(std::declval<const Timeout&>().late())>;

constexpr fanout::DeviceId host(int index) { return {.kind = "host", .index = index}; }

}  // namespace

TEST_CASE("no shard is late if there is no deadline or it is kept") {
  Told told;
  for (const auto& deadline : {fanout::Duration::forever(), fanout::Duration(1h)}) {
    const ParallelModel model{[](Context auto& ctx, Rows rows) {
                                std::this_thread::sleep_for(1ms);
                                return std::pair{ctx.stop_requested(), rows.size()};
                              },
                              host_devices(2), Options{.deadline = deadline, .late = told.sink()}};
    const auto [stop, rows] = model(std::vector{1, 2, 3});
    CHECK_FALSE(stop[0]);
    CHECK_FALSE(stop[1]);
    CHECK(rows[0] + rows[1] == 3);
  }
  CHECK(told.late.empty());
}

TEST_CASE("the message of a call with one shard is in the singular") {
  const ParallelModel model{Dawdler{}, host_devices(1), Options{.deadline = 1ms}};
  const auto timeout = timeout_of([&] { model(std::vector{-1}); });
  REQUIRE(timeout);
  CHECK(says(timeout->what(), "1 of 1 shard took longer than the deadline of 1 ms"));
}

TEST_CASE("a late call waits, reports its late shards, and throws with the results of the others") {
  Told told;
  const ParallelModel model{Dawdler{}, host_devices(3), Options{.deadline = 30ms, .late = told.sink()}};
  for (const bool async : {false, true}) {
    CAPTURE(async);
    // The late one on the calling thread, on another, and between two that are not.
    for (const std::size_t late : {0U, 1U, 2U}) {
      CAPTURE(late);
      std::vector<int> rows = {1, 2, 3, 4, 5, 6, 7};  // [0, 3) [3, 5) [5, 7)
      const fanout::RowRange range = model.plan(7)[late].rows;
      rows[range.first] = -1;
      std::optional<Timeout> timeout;
      REQUIRE(in_the_end([&] {
        told.late.clear();
        timeout = timeout_of([&] { async ? model.async(rows).get() : model(rows); });
        return timeout && timeout->late().size() == 1;
      }));
      const LateShard expected{.shard = late, .device = host(static_cast<int>(late)), .rows = range};
      CHECK(std::vector<LateShard>(timeout->late().begin(), timeout->late().end()) == std::vector{expected});
      CHECK(told.late == std::vector{expected});
      CHECK(says(timeout->what(), "1 of 3 shards", "deadline of 30 ms", "on device host:", "rows " + to_string(range)));

      const Results* const results = timeout->results<Results>();
      REQUIRE(results != nullptr);
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(range.first),
                 rows.begin() + static_cast<std::ptrdiff_t>(range.last));
      const auto& [values, mean] = *results;
      CHECK(std::vector<int>(values.begin(), values.end()) == rows);
      double sum = 0;
      for (const int row : rows) sum += row;
      CHECK(mean == doctest::Approx(sum / static_cast<double>(rows.size())));  // by rows, of those that are there
      CHECK(timeout->results<int>() == nullptr);
    }
    CHECK(in_the_end([&] { return !timeout_of([&] { CHECK(std::get<1>(model(std::vector{1, 2, 3})) == 2); }); }));
  }
}

TEST_CASE("a search stops at its deadline, and the results of the other shards are used") {
  const auto log = [](const LateShard&) {};
  std::vector<int> found;
  const auto use = [&found](const std::vector<int>& rows) { found = rows; };
  const auto search = [](Context auto& ctx, Rows rows) {
    if (rows[0] < 0) until_stop(ctx), a_little_longer();
    return std::vector<int>(rows.begin(), rows.end());
  };
  CHECK(in_the_end([&] {
    const std::vector<int> rows = {1, 2, -3, 4, 5, 6};
    // [deadline]
    const ParallelModel model{search, host_devices(3), Options{.deadline = 50ms, .late = log}};
    try {
      use(model(rows));
    } catch (const Timeout& timeout) {
      for (const LateShard& late : timeout.late()) log(late);  // which shard, device and rows
      if (const auto* others = timeout.results<std::vector<int>>()) use(*others);
    }
    // [/deadline]
    return found == std::vector{1, 2, 5, 6};
  }));
}

TEST_CASE("a call whose shards are all late has no results, and a sink that throws breaks nothing") {
  int told = 0;
  const ParallelModel model{Dawdler{}, host_devices(2), Options{.deadline = 1ms, .late = [&](const LateShard&) {
                                                                  ++told;
                                                                  throw std::runtime_error("a full disk");
                                                                }}};
  const auto timeout = timeout_of([&] { model(std::vector{-1, -2}); });
  REQUIRE(timeout);
  CHECK(timeout->late().size() == 2);
  CHECK(timeout->results<Results>() == nullptr);
  CHECK(told == 2);
  CHECK(in_the_end([&] { return !timeout_of([&] { CHECK(std::get<1>(model(std::vector{3, 5})) == 4); }); }));
}

TEST_CASE("the waiting caller wakes at the deadline and reports late shards before they end") {
  std::atomic<bool> started{false};
  std::atomic<bool> told{false};
  const ParallelModel model{[&](Rows rows) {
                              if (rows[0] < 0) started = true;  // so on a thread of its device
                              while (!(rows[0] < 0 ? told : started)) std::this_thread::yield();
                            },
                            host_devices(2), Options{.deadline = 10ms, .late = [&](const LateShard&) { told = true; }}};
  CHECK_THROWS_AS(model(std::vector{1, -1}), Timeout);
  started = false;
  told = false;
  auto pending = model.async(std::vector{1, -1});
  while (!started) std::this_thread::yield();
  CHECK_THROWS_AS(pending.get(), Timeout);
}

TEST_CASE("exceptions from forward and from before it take precedence over Timeout") {
  const ParallelModel model{[](Context auto& ctx, Rows rows) {
                              if (rows[0] < 0) until_stop(ctx), a_little_longer();
                              if (rows[0] == 0) throw std::runtime_error("in forward");
                            },
                            host_devices(2), Options{.deadline = 1ms}};
  CHECK_THROWS_AS(model(std::vector{0, -1}), fanout::ReplicaError);
  CHECK_THROWS_AS(model(std::vector{1, -1}), Timeout);
}

TEST_CASE("a nested call is asked to stop with the outer call, and is not reported late for it") {
  const ParallelModel inner{[](Context auto& ctx, Rows) {
                              until_stop(ctx);
                              a_little_longer();
                              return ctx.size();
                            },
                            host_devices(2)};
  // One in between that has a deadline of its own, which is later.
  const ParallelModel between{[&inner](Rows rows) { return inner(rows)[0] + inner.async(rows).get()[0]; },
                              host_devices(1), Options{.deadline = 1h}};
  const ParallelModel outer{[&between](Rows rows) { return between(rows)[0]; }, host_devices(2),
                            Options{.deadline = 10ms}};
  const auto timeout = timeout_of([&] { outer(std::vector{1, 2, 3, 4}); });
  REQUIRE(timeout);
  CHECK(timeout->late().size() == 2);

  // The earlier of the two, where that is its own.
  const ParallelModel soon{[](Context auto& ctx, Rows) { until_stop(ctx), a_little_longer(); }, host_devices(1),
                           Options{.deadline = 5ms}};
  const ParallelModel late{[&soon](Rows rows) { return timeout_of([&] { soon(rows); }).has_value(); }, host_devices(2),
                           Options{.deadline = 1h}};
  CHECK(late(std::vector{1, 2})[0]);
}

TEST_CASE("nested calls are asked to stop with the outer call, whatever their own deadline") {
  const std::vector<int> rows(8);  // two shards at each of three depths
  std::atomic<int> asked{0};
  std::atomic<int> stops{0};
  const auto ask = [&](const auto& ctx) {
    ++asked;
    if (ctx.stop_requested()) ++stops;
  };
  bool async_inner = false;
  const ParallelModel inner{[&](auto& ctx, Rows) { ask(ctx); }, host_devices(2)};
  const auto calls_inner = [&](auto& ctx, Rows part) {
    ask(ctx);
    async_inner ? inner.async(part).get() : inner(part);
  };
  with_each_kind(calls_inner, [&](const auto& forward) {
    for (const auto& own : {fanout::Duration::forever(), fanout::Duration(1h)}) {
      const ParallelModel between{forward, host_devices(2), Options{.deadline = own}};
      bool async_between = false;
      const auto calls_between = [&](Context auto& ctx, Rows part) {
        ask(ctx);
        async_between ? between.async(part).get() : between(part);
      };
      const ParallelModel at_once{calls_between, host_devices(2), Options{.deadline = 0ms}};
      const ParallelModel never{calls_between, host_devices(2), Options{.deadline = 1h}};
      for (const int asynchronous : {0, 1, 2, 3}) {
        CAPTURE(asynchronous);
        async_between = (asynchronous & 1) != 0;
        async_inner = (asynchronous & 2) != 0;
        asked = stops = 0;
        CHECK_THROWS_AS(at_once(rows), Timeout);
        CHECK(asked == 2 + 4 + 8);
        CHECK(stops == asked);
        CHECK_THROWS_AS(at_once.async(rows).get(), Timeout);
        CHECK(stops == 2 * (2 + 4 + 8));
        CHECK_NOTHROW(never(rows));
        CHECK(stops == 2 * (2 + 4 + 8));
      }
    }
  });
}

TEST_CASE("a call made inside another and taken after it is asked to stop at that call's deadline") {
  bool stops = false;
  const ParallelModel nested{[&stops](auto& ctx, Rows) { CHECK(ctx.stop_requested() == stops); }, without_threads(1)};
  const auto ask = [&](auto& ctx, Rows rows) {
    stops = ctx.stop_requested();
    nested(rows);
  };
  with_each_kind(ask, [&](const auto& forward) {
    for (const auto& own : {fanout::Duration::forever(), fanout::Duration(1h)}) {
      const ParallelModel inner{forward, without_threads(1), Options{.deadline = own}};
      std::optional<fanout::Pending<void>> pending;
      const auto starts = [&](Rows rows) { pending.emplace(inner.async(std::vector(rows.begin(), rows.end()))); };
      stops = false;
      const ParallelModel at_once{starts, host_devices(1), Options{.deadline = 0ms}};
      CHECK_THROWS_AS(at_once(std::vector{1}), Timeout);
      CHECK_FALSE(stops);  // it has not run
      CHECK_NOTHROW(pending->get());
      CHECK(stops);
      const ParallelModel never{starts, host_devices(1)};
      never(std::vector{1});
      CHECK_NOTHROW(pending->get());
      CHECK_FALSE(stops);
    }
  });
}

TEST_CASE("a dropped asynchronous call reports each of its late shards once") {
  Told told;
  bool told_before_last = false;
  const auto forward = [&](auto& ctx, Rows rows) {
    until_stop(ctx);
    if (rows[0] == 3) told_before_last = !told.late.empty();
  };
  const std::vector<LateShard> all{{.shard = 0, .device = {.kind = "idle", .index = 0}, .rows = {0, 1}},
                                   {.shard = 1, .device = {.kind = "idle", .index = 1}, .rows = {1, 2}},
                                   {.shard = 2, .device = {.kind = "idle", .index = 2}, .rows = {2, 3}}};
  with_each_kind(forward, [&](const auto& of_kind) {
    const ParallelModel model{of_kind, without_threads(3), Options{.deadline = 0ms, .late = told.sink()}};
    // Whoever drops it runs its shards.
    { const auto pending = model.async(std::vector{1, 2, 3}); }
    CHECK(told.late == all);
    CHECK(told_before_last);
    // Who waited for it has told already.
    told.late.clear();
    {
      const auto pending = model.async(std::vector{1, 2, 3});
      pending.wait();
      CHECK(told.late == all);
    }
    CHECK(told.late == all);
  });
}

TEST_CASE("late shards that had ended before their call was dropped are told, too") {
  Told told;
  const auto forward = [](auto& ctx, Rows) { until_stop(ctx); };
  with_each_kind(forward, [&](const auto& of_kind) {
    const ParallelModel model{of_kind, host_devices(3), Options{.deadline = 0ms, .late = told.sink()}};
    {
      const auto pending = model.async(std::vector{1, 2, 3});
      while (!pending.ready()) std::this_thread::yield();
    }
    const std::vector<LateShard> all{{.shard = 0, .device = host(0), .rows = {0, 1}},
                                     {.shard = 1, .device = host(1), .rows = {1, 2}},
                                     {.shard = 2, .device = host(2), .rows = {2, 3}}};
    CHECK(told.late == all);
  });
}

TEST_CASE("a destroyed Pending reports late shards, and a Timeout's results outlive the model") {
  Told told;
  std::optional<ParallelModel<Dawdler, fanout::DeviceSet<fanout::HostDevice>>> model{
      std::in_place, Dawdler{}, host_devices(2), Options{.deadline = 5ms, .late = told.sink()}};
  { const auto pending = model->async(std::vector{1, -1}); }
  CHECK_FALSE(told.late.empty());
  told.late.clear();
  auto pending = model->async(std::vector{1, -1});
  model.reset();
  const auto timeout = timeout_of([&] { pending.get(); });
  REQUIRE(timeout);
  CHECK(told.late == std::vector(timeout->late().begin(), timeout->late().end()));
  CHECK((timeout->results<Results>() != nullptr) == (told.late.size() == 1));
}

TEST_CASE("results go with the last copy of the error, and need not be copied") {
  const auto counted = std::make_shared<int>(0);
  {
    LateShards late;
    late.push_back({});
    std::optional<Timeout> first{std::in_place, late, 2, fanout::Duration(1ms)};
    struct Moved {
      std::shared_ptr<int> alive;
      std::unique_ptr<int> alone;
    };
    first->keep_results([&] { return Moved{counted, std::make_unique<int>(3)}; });
    Timeout second = *first;
    CHECK(counted.use_count() == 2);
    first.reset();
    CHECK(*second.results<Moved>()->alone == 3);
    second = Timeout(late, 2, fanout::Duration(1ms));
    CHECK(counted.use_count() == 1);
    CHECK(second.results<Moved>() == nullptr);
  }
}

#if defined(__FLT16_MAX__)
TEST_CASE("results may be of a type without a std::type_info, such as _Float16") {
  LateShards late;
  late.push_back({});
  Timeout timeout(late, 2, fanout::Duration(1ms));
  timeout.keep_results([] { return static_cast<_Float16>(3); });
  REQUIRE(timeout.results<_Float16>() != nullptr);
  CHECK(static_cast<float>(*timeout.results<_Float16>()) == 3);
  CHECK(timeout.results<float>() == nullptr);
}
#endif

TEST_CASE("a negative deadline is refused") {
  CHECK_THROWS_AS((ParallelModel{Dawdler{}, host_devices(1), Options{.deadline = -1ms}}), fanout::InvalidArgument);
  const ParallelModel at_once{Dawdler{}, host_devices(1), Options{.deadline = 0ms}};
  CHECK_THROWS_AS(at_once(std::vector{1}), Timeout);
}
