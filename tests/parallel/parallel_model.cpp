// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"
#include "support/toy_device.hpp"

using fanout::AllVisible;
using fanout::Context;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Plan;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

using Host = fanout::DeviceSet<HostDevice>;

template <class T>
std::vector<T> values(const Tensor<T, 1>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

/// Multiplies by a number that can be changed.
struct Scaling {
  Tensor<int, 1> factor{1};
  auto forward(View<const int, 1> x) const {
    std::vector<int> result;
    for (const int value : x) result.push_back(factor[0] * value);
    return result;
  }
};

Scaling scale(int factor) {
  Scaling model;
  model.factor[0] = factor;
  return model;
}

/// Counts the calls of each of its copies.
struct CallCounter {
  int calls = 0;
  int forward(View<const int, 1>) { return ++calls; }
};

struct Unmoved {
  std::unique_ptr<int> value = std::make_unique<int>(5);
  int forward(View<const int, 1>) const { return *value; }
};

template <class M, class Source>
constexpr bool is_on(const ParallelModel<M, Source>&) {
  return std::is_same_v<Source, Host>;
}

/// Rows dealt to the last device alone.
struct LastOnly {
  Plan operator()(std::size_t rows, std::size_t devices) const { return {{.rows = {0, rows}, .device = devices - 1}}; }
};

/// A plan for four rows that the test sets; even ones for all others.
struct Wrong {
  const Plan* plan;
  Plan operator()(std::size_t rows, std::size_t devices) const {
    return rows == 4 ? *plan : fanout::EvenSplit{}(rows, devices);
  }
};

}  // namespace

TEST_CASE("a model is made of a functor, of devices and of options, each left out where it has a default") {
  ParallelModel defaults{scale(2)};
  static_assert(std::is_same_v<decltype(defaults), ParallelModel<Scaling, AllVisible<HostDevice>>>);
  static_assert(std::is_same_v<decltype(defaults), ParallelModel<Scaling>>);
  ParallelModel with_options{scale(2), Options{.seed = 4}};
  static_assert(std::is_same_v<decltype(with_options), ParallelModel<Scaling>>);
  ParallelModel on_devices{scale(2), host_devices(2)};
  static_assert(std::is_same_v<decltype(on_devices), ParallelModel<Scaling, Host>>);
  ParallelModel on_devices_with_options{scale(2), host_devices(2), Options{.seed = 4}};
  static_assert(std::is_same_v<decltype(on_devices_with_options), ParallelModel<Scaling, Host>>);
  ParallelModel from_a_source{scale(2), AllVisible<HostDevice>{}};
  static_assert(std::is_same_v<decltype(from_a_source), ParallelModel<Scaling>>);
  ParallelModel<Scaling> named{scale(2)};
  const ParallelModel lambda{[](View<const int, 1> x) { return x; }, host_devices(2)};

  CHECK(defaults.devices().size() == host_devices().size());
  CHECK(on_devices.devices().size() == 2);
  const auto x = count_to(5);
  const std::vector<int> expected{0, 2, 4, 6, 8};
  CHECK(defaults(x) == expected);
  CHECK(with_options(x) == expected);
  CHECK(on_devices(x) == expected);
  CHECK(on_devices_with_options(x) == expected);
  CHECK(from_a_source(x) == expected);
  CHECK(named(x) == expected);
  CHECK(values(lambda(x)) == values(x));
}

TEST_CASE("model() is the original, and a model with a const forward is copied nowhere") {
  ParallelModel model{scale(3), host_devices(4)};
  CHECK(model(count_to(3)) == std::vector{0, 3, 6});
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(model.replica(i).shares_original());
    CHECK(&model.replica(i).model() == &model.model());
  }
}

TEST_CASE("a model with a non-const forward is copied for each device, and each copy keeps its state between calls") {
  ParallelModel model{CallCounter{}, host_devices(3)};
  CHECK(values(model(count_to(9))) == std::vector{1, 1, 1});
  CHECK(values(model(count_to(2))) == std::vector{2, 2});
  CHECK(values(model(count_to(9))) == std::vector{3, 3, 2});
  CHECK(model.model().calls == 0);
  CHECK(model.replica(2).model().calls == 2);
  CHECK_FALSE(model.replica(0).shares_original());
}

TEST_CASE("the copies are refreshed after an update, also if it throws") {
  ParallelModel model{CallCounter{}, host_devices(2)};
  model(count_to(4));
  CHECK(model.update([](CallCounter& counter) { return counter.calls += 10; }) == 10);
  CHECK(values(model(count_to(4))) == std::vector{11, 11});
  CHECK(values(model(count_to(4))) == std::vector{12, 12});
  CHECK(model.model().calls == 10);
  CHECK_THROWS_AS(model.update([](CallCounter& counter) {
    counter.calls = 20;
    throw std::runtime_error("half done");
  }),
                  std::runtime_error);
  CHECK(values(model(count_to(4))) == std::vector{21, 21});
  CHECK(model.replica(0).version() == 2);
}

TEST_CASE("an update is seen by a shared model too") {
  ParallelModel model{scale(1), host_devices(2)};
  int& factor = model.update([](Scaling& original) -> int& { return original.factor[0]; });
  CHECK(&factor == model.model().factor.data());
  model.update([](Scaling& original) { original.factor[0] = 4; });
  CHECK(model(count_to(3)) == std::vector{0, 4, 8});
}

TEST_CASE("a model that cannot be copied runs if its forward is const") {
  ParallelModel model{Unmoved{}, host_devices(2)};
  CHECK(values(model(count_to(4))) == std::vector{5, 5});
  model.update([](Unmoved& original) { *original.value = 6; });
  CHECK(values(model(count_to(4))) == std::vector{6, 6});
}

TEST_CASE("a mutable lambda is copied for each device") {
  ParallelModel model{[calls = 0](View<const int, 1>) mutable { return ++calls; }, host_devices(2)};
  model(count_to(4));
  CHECK(values(model(count_to(4))) == std::vector{2, 2});
}

TEST_CASE("replica() refuses what is no position") {
  ParallelModel model{scale(1), host_devices(2)};
  CHECK(model.replica(1).device().id() == fanout::DeviceId{.kind = "host", .index = 1});
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] { model.replica(2); }), "Invalid device id", "below 2", "2"));
}

TEST_CASE("plan() shows how rows are shared out") {
  ParallelModel model{scale(1), host_devices(2)};
  CHECK(model.plan(5) == Plan{{.rows = {0, 3}, .device = 0}, {.rows = {3, 5}, .device = 1}});
  CHECK(model.plan(1) == Plan{{.rows = {0, 1}, .device = 0}});
  CHECK(model.plan(0).size() == 2);
}

TEST_CASE("another split policy shares the rows out as it likes") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        return std::pair{ctx.device().id().index, x};
                      },
                      host_devices(3), Options{.split = LastOnly{}}};
  const auto [device, rows] = model(count_to(4));
  CHECK(values(device) == std::vector{2});
  CHECK(values(rows) == std::vector{0, 1, 2, 3});
}

TEST_CASE("a split policy that makes no valid plan is refused, and the model stays usable") {
  Plan wrong;
  ParallelModel model{scale(2), host_devices(2), Options{.split = Wrong{&wrong}}};
  const Plan overlap{{.rows = {0, 3}, .device = 0}, {.rows = {2, 4}, .device = 1}};
  const Plan gap{{.rows = {0, 1}, .device = 0}, {.rows = {2, 4}, .device = 1}};
  const Plan too_few{{.rows = {0, 3}, .device = 0}};
  const Plan too_many{{.rows = {0, 5}, .device = 0}};
  const Plan backwards{{.rows = {0, 4}, .device = 0}, {.rows = {4, 3}, .device = 1}};
  const Plan unknown{{.rows = {0, 2}, .device = 0}, {.rows = {2, 4}, .device = 2}};
  for (const Plan& plan : {overlap, gap, too_few, too_many, backwards, unknown, Plan{}}) {
    wrong = plan;
    CHECK_THROWS_AS(model(count_to(4)), fanout::InvalidArgument);
    CHECK_THROWS_AS(model.plan(4), fanout::InvalidArgument);
    CHECK(model(count_to(3)) == std::vector{0, 2, 4});
  }
  wrong = unknown;
  CHECK(says(message_of<fanout::InvalidArgument>([&] { model(count_to(4)); }), "shard 1", "devices 0 to 1",
             "found device 2"));
}

TEST_CASE("an output device is one of the set's or any host device") {
  const fanout::DeviceId far{.kind = "host", .index = 77};
  const fanout::DeviceId gpu{.kind = "cuda", .index = 1};
  ParallelModel model{scale(2), host_devices(2), Options{.output = far}};
  CHECK(model(count_to(2)) == std::vector{0, 2});
  CHECK(says(message_of<fanout::InvalidDeviceId>([&] {
               ParallelModel{scale(2), host_devices(2), Options{.output = gpu}};
             }),
             "Invalid device id", "Options::output", "host:0, host:1", "cuda:1"));
}

TEST_CASE("devices of different kinds run one model, each entered and synchronized once per shard") {
  ToyDevice::entered = ToyDevice::left = ToyDevice::synchronized = 0;
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        auto output = fanout::output<int>(ctx);
                        for (std::size_t i = 0; i < x.extent(0); ++i) output[i] = 2 * x[i];
                        return std::pair{output, to_string(ctx.device().id())};
                      },
                      host_devices(2) | AllVisible<ToyDevice>{}.select()};
  const auto [output, names] = model(count_to(4));
  CHECK(values(output) == std::vector{0, 2, 4, 6});
  CHECK(names == std::vector<std::string>{"host:0", "host:1", "toy:0", "toy:1"});
  CHECK(ToyDevice::entered == 2);
  CHECK(ToyDevice::left == 2);
  CHECK(ToyDevice::synchronized == 2);

  ParallelModel failing{[](Context auto& ctx, View<const int, 1>) {
                          if (ctx.rank() == 3) throw std::runtime_error("on the toy");
                        },
                        host_devices(2) | AllVisible<ToyDevice>{}.select()};
  CHECK(says(message_of<fanout::ReplicaError>([&] { failing(count_to(4)); }), "on device toy:1, rows [3, 4)"));
  CHECK(ToyDevice::left == 4);
}

TEST_CASE("moving a model moves ownership, and each functor is destroyed once") {
  auto alive = std::make_shared<int>(0);
  const auto make = [&alive](int value) {
    return ParallelModel{[alive, value](View<const int, 1>) { return *alive + value; }, host_devices(2)};
  };
  static_assert(std::is_nothrow_move_constructible_v<ParallelModel<Scaling>>);
  static_assert(!std::is_copy_constructible_v<ParallelModel<Scaling>>);
  {
    auto model = make(1);
    const auto* const original = &model.model();
    auto moved = std::move(model);
    CHECK(&moved.model() == original);
    CHECK(values(moved(count_to(2))) == std::vector{1, 1});
    CHECK(alive.use_count() == 2);
  }
  CHECK(alive.use_count() == 1);
  ParallelModel<CallCounter> first{CallCounter{1}};
  ParallelModel<CallCounter> second{CallCounter{5}};
  first = std::move(second);
  CHECK(first.model().calls == 5);
}

TEST_CASE("a model may be called with no arguments, and with arguments that are gone after the call") {
  ParallelModel nothing{[] { return 3; }, host_devices(2)};
  CHECK(values(nothing()) == std::vector{3});
  ParallelModel model{
      [](View<const int, 1> x, const std::string& text) { return static_cast<std::size_t>(x.extent(0)) + text.size(); },
      host_devices(2)};
  CHECK(values(model(count_to(4), std::string("three"))) == std::vector<std::size_t>{7, 7});
}

TEST_CASE("errors of the arguments are thrown as they are, and the model stays usable") {
  ParallelModel model{[](View<const int, 1> x, View<const int, 1> y) { return x[0] + y[0]; }, host_devices(2)};
  CHECK_THROWS_AS(model(count_to(4), count_to(5)), fanout::ShapeMismatch);
  CHECK(values(model(count_to(4), count_to(4))) == std::vector{0, 4});
}
