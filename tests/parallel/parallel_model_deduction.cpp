// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the README and the documentation write without template arguments, and which types it makes.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/environment.hpp"
#include "support/toy_device.hpp"

using fanout::AllVisible;
using fanout::DeviceSet;
using fanout::FirstAvailable;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::Indices;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::ToyDevice;

namespace {

using Hosts = DeviceSet<HostDevice>;

struct Twice {
  int factor = 2;
  std::vector<int> forward(View<const int, 1> x) const {
    std::vector<int> result;
    for (const int value : x) result.push_back(factor * value);
    return result;
  }
};

const std::vector<int> input{1, 2, 3, 4, 5};
const std::vector<int> doubled{2, 4, 6, 8, 10};

int sum(View<const int, 1> x) {
  int sum = 0;
  for (const int value : x) sum += value;
  return sum;
}

/// Checks the type and, since a type says little about values, that the model works.
template <class Expected, class Model>
void check(const Model& model) {
  static_assert(std::is_same_v<Model, Expected>);
  CHECK(model(input) == doubled);
}

}  // namespace

TEST_CASE("a model alone runs on all host devices") {
  check<ParallelModel<Twice, AllVisible<HostDevice>>>(ParallelModel{Twice{}});
  check<ParallelModel<Twice>>(ParallelModel{Twice{}});
  check<ParallelModel<Twice>>(ParallelModel(Twice{}));
  const Twice lvalue;
  check<ParallelModel<Twice>>(ParallelModel{lvalue});
  const ParallelModel<Twice> named{Twice{}};
  check<ParallelModel<Twice>>(named);
}

TEST_CASE("a model and options run on all host devices") {
  check<ParallelModel<Twice>>(ParallelModel{Twice{}, Options{.seed = 7}});
  check<ParallelModel<Twice>>(ParallelModel{Twice{}, Options{}});
  const Options options{.split = fanout::ChunkSplit{}};
  check<ParallelModel<Twice>>(ParallelModel{Twice{}, options});
}

TEST_CASE("a model and devices run on these") {
  check<ParallelModel<Twice, Hosts>>(ParallelModel{Twice{}, host_devices(2)});
  check<ParallelModel<Twice, Hosts>>(ParallelModel{Twice{}, host_devices(2), Options{.seed = 7}});
  const auto devices = host_devices({.count = 3, .pin = false});
  check<ParallelModel<Twice, Hosts>>(ParallelModel{Twice{}, devices});
  const auto mixed = host_devices(2) | AllVisible<ToyDevice>{}.select();
  check<ParallelModel<Twice, DeviceSet<HostDevice, ToyDevice>>>(ParallelModel{Twice{}, mixed});
}

TEST_CASE("a model and a device source run on what it selects") {
  const fanout_test::EnvironmentVariable count("FANOUT_HOST_DEVICES", "3");
  check<ParallelModel<Twice>>(ParallelModel{Twice{}, AllVisible<HostDevice>{}});
  check<ParallelModel<Twice, Indices<HostDevice, 0, 2>>>(ParallelModel{Twice{}, Indices<HostDevice, 0, 2>{}});
  check<ParallelModel<Twice, FirstAvailable<ToyDevice, HostDevice>>>(
      ParallelModel{Twice{}, FirstAvailable<ToyDevice, HostDevice>{}, Options{.seed = 7}});
}

TEST_CASE("a source in the type selects without being passed") {
  const fanout_test::EnvironmentVariable count("FANOUT_HOST_DEVICES", "3");
  const ParallelModel<Twice, Indices<HostDevice, 2, 0>> indices{Twice{}};
  CHECK(indices(input) == doubled);
  CHECK(indices.devices().ids() == host_devices({2, 0}).ids());
  static_assert(std::is_same_v<decltype(indices)::device_set, Hosts>);
  const ParallelModel<Twice, Indices<HostDevice, 1>> with_options{Twice{}, Options{.seed = 7}};
  CHECK(with_options.devices().ids() == host_devices({1}).ids());
  const ParallelModel<Twice, FirstAvailable<ToyDevice, HostDevice>> first{Twice{}};
  CHECK(first(input) == doubled);
  CHECK(to_string(first.devices().main_device()) == "toy:0");
  CHECK_THROWS_AS((ParallelModel<Twice, Indices<HostDevice, 3>>{Twice{}}), fanout::InvalidDeviceId);
}

TEST_CASE("lambdas, functions and function objects of the standard library are models") {
  const auto lambda = [](View<const int, 1> x) { return Twice{}.forward(x); };
  check<ParallelModel<std::remove_const_t<decltype(lambda)>>>(ParallelModel{lambda});
  check<ParallelModel<std::remove_const_t<decltype(lambda)>, Hosts>>(ParallelModel{lambda, host_devices(2)});

  const ParallelModel function{sum, host_devices(1)};
  static_assert(std::is_same_v<decltype(function), const ParallelModel<int (*)(View<const int, 1>), Hosts>>);
  CHECK(function(input)[0] == 15);

  const std::function<int(View<const int, 1>)> object = sum;
  const ParallelModel wrapped{object, host_devices(1)};
  static_assert(std::is_same_v<decltype(wrapped), const ParallelModel<std::function<int(View<const int, 1>)>, Hosts>>);
  CHECK(wrapped(input)[0] == 15);
}

TEST_CASE("a device set of vectors of devices has their kinds") {
  const auto hosts = host_devices(2);
  const DeviceSet reversed{std::vector{hosts[1], hosts[0]}};
  static_assert(std::is_same_v<decltype(reversed), const Hosts>);
  CHECK(to_string(reversed.main_device()) == "host:1");
  const DeviceSet both{HostDevice::visible(), ToyDevice::visible()};
  static_assert(std::is_same_v<decltype(both), const DeviceSet<HostDevice, ToyDevice>>);
  CHECK(both.size() == HostDevice::visible().size() + 2);
}
