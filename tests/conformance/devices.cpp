// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rules 37 to 52 and 124 of docs/conformance.md: which devices run a model, and how the wrapped model is reached.
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/to.hpp>
#include <fanout/fanout.hpp>
#include <fanout/worker/registry.hpp>

#include "conformance/shards.hpp"
#include "device/remote_device.hpp"
#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "support/toy_device.hpp"

using conformance::count_to;
using conformance::Tell;
using conformance::values;
using fanout::Context;
using fanout::DeviceId;
using fanout::host_devices;
using fanout::HostDevice;
using fanout::InvalidDeviceId;
using fanout::Options;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::EnvironmentVariable;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

using Texts = std::vector<std::string>;

constexpr DeviceId host(int index) { return {.kind = "host", .index = index}; }

/// A device with a memory of its own, which is in truth the host's.
struct FarDevice : ToyDevice {
  DeviceId id() const { return {.kind = "far", .index = host.id().index}; }
  fanout::backend::Memory memory() const { return {{id()}, &fanout::backend::host_memory_operations}; }
  static std::vector<FarDevice> visible() { return {FarDevice{ToyDevice::visible()[0]}}; }
};
static_assert(fanout::Device<FarDevice>);

/// Its weight lies where it was put.
struct Placed {
  Tensor<int, 1> weight{1};
  std::string forward(View<const int, 1>) const { return to_string(weight.space()); }
};

/// Its copies lie in their devices' memory.
struct PlacesItself : Placed {
  std::string forward(View<const int, 1> x) { return std::as_const(*this).Placed::forward(x); }
  PlacesItself to(const FarDevice& device) const {
    PlacesItself copy;
    copy.weight = Tensor<int, 1>::uninitialized({1}, device.memory());
    return copy;
  }
};

/// State of several kinds, none of which is registered anywhere.
struct Walker {
  Tensor<int, 1> step{1};
  int place = 0;
  std::vector<int> seen = {};

  int forward(View<const int, 1>) {
    place += step[0];
    seen.push_back(place);
    return place;
  }
};

}  // namespace

TEST_CASE("rule 37: a model without a device list runs on all visible devices, in their order") {
  const EnvironmentVariable three("FANOUT_HOST_DEVICES", "3");
  const ParallelModel model{Tell{}};
  CHECK(model.devices().ids() == std::vector{host(0), host(1), host(2)});
}

TEST_CASE("rule 38: devices are named by indices, by a type or as themselves, those of the host too") {
  const EnvironmentVariable three("FANOUT_HOST_DEVICES", "3");
  const std::vector expected{host(0), host(2)};
  CHECK(host_devices({0, 2}).ids() == expected);
  CHECK(host_devices(std::vector{0L, 2L}).ids() == expected);
  CHECK(fanout::Indices<HostDevice, 0, 2>{}.select().ids() == expected);
  const std::vector<HostDevice> all = HostDevice::visible();
  CHECK(fanout::DeviceSet<HostDevice>({all[0], all[2]}).ids() == expected);
  CHECK(to_string(all[2].id()) == "host:2");
}

TEST_CASE("rule 39: the order of the devices is kept, and the first is the main device") {
  const EnvironmentVariable two("FANOUT_HOST_DEVICES", "2");
  const ParallelModel model{Tell{}, host_devices({1, 0})};
  CHECK(model.devices().main_device() == host(1));
  CHECK(model(count_to(4)) == Texts{"host:1[0, 2)", "host:0[2, 4)"});
  CHECK(model() == Texts{"host:1[0, 0)"});
}

TEST_CASE("rule 10: input is transferred from any memory, and memory without a known transfer is named") {
  const auto add_up = [](fanout::View<const int, 1> x) {
    int sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += fanout_test::RemoteMemory::reach(x.data())[i];
    return sum;
  };
  const ParallelModel remote{add_up, fanout_test::remote_devices(2)};
  const fanout_test::RemoteDevice other(2);
  CHECK(values(remote(count_to(4))) == std::vector<int>{1, 5});
  CHECK(values(remote(fanout::to(count_to(4), other))) == std::vector<int>{1, 5});

  const ParallelModel model{Tell{}, fanout::AllVisible<FarDevice>{}};
  CHECK(says(message_of<fanout::DeviceMismatch>([&] {
               model(1, std::pair{2, count_to(4)});
             }),
             "Expected all tensors to be on the same device, but found at least two devices, far:0 and host:0",
             "wrong memory", "input[1][1]", "expected the memory of far:0", "found host memory",
             "copy it there first"));
  const auto far = Tensor<int, 1>::uninitialized({4}, model.devices()[0].memory());
  CHECK(model(far) == Texts{"far:0[0, 4)"});
}

TEST_CASE("rules 40 and 114: results go to the main device's memory, or to a chosen device") {
  const auto output = [](Context auto& ctx, int) { return fanout::empty<int>(ctx, 2); };
  const fanout::DeviceSet<FarDevice> far(FarDevice::visible());
  const ParallelModel by_default{output, far};
  CHECK(by_default(1).space() == far[0].memory().space);
  CHECK(fanout::gather(fanout::apply(fanout::replicate(output, far), fanout::scatter(far, 1))).space() ==
        far[0].memory().space);

  const fanout::DeviceSet<ToyDevice> toys(ToyDevice::visible());
  const ParallelModel on_host{output, toys, Options{.output = host(7)}};
  CHECK(on_host(1).space() == fanout::host_memory);
}

TEST_CASE("rules 41 and 42: the output device is the host or one of the model's") {
  const ParallelModel model{Tell{}, host_devices(2), Options{.output = host(0)}};
  CHECK(model(count_to(2)).size() == 2);
  CHECK(says(message_of<InvalidDeviceId>([] {
               ParallelModel{Tell{}, host_devices(2), Options{.output = DeviceId{.kind = "cuda", .index = 7}}};
             }),
             "Invalid device id", "Options::output", "host:0, host:1", "cuda:7"));
}

TEST_CASE("rule 43: a missing device is an invalid device id before a model is made") {
  const EnvironmentVariable two("FANOUT_HOST_DEVICES", "2");
  CHECK(says(message_of<InvalidDeviceId>([] {
               ParallelModel{Tell{}, host_devices({0, 2})};
             }),
             "Invalid device id", "host:0, host:1", "found 2"));
  CHECK(says(message_of<InvalidDeviceId>([] { ParallelModel<Tell, fanout::Indices<HostDevice, 5>>{Tell{}}; }),
             "Invalid device id", "found 5"));
}

TEST_CASE("rule 44: indices count the visible devices") {
  const EnvironmentVariable two("FANOUT_HOST_DEVICES", "2");
  CHECK(host_devices().size() == 2);
  CHECK(says(message_of<InvalidDeviceId>([] {
               (void)host_devices({1, 2});
             }),
             "Invalid device id", "the position of a visible device", "found 2"));
}

TEST_CASE("rule 45: a device may be in a set only once, and there may be more devices than cores") {
  CHECK(says(message_of<InvalidDeviceId>([] {
               (void)host_devices({0, 0});
             }),
             "Invalid device id", "each device once", "host:0 at positions 0 and 1"));
  CHECK(host_devices(static_cast<int>(fanout::backend::registry().cores().size()) + 3).size() ==
        fanout::backend::registry().cores().size() + 3);
}

TEST_CASE("rule 46: with one device results are gathered as with several") {
  const auto forward = [](View<const int, 1> x) { return std::pair{static_cast<int>(x.size()), x}; };
  for (int devices = 1; devices <= 2; ++devices) {
    const ParallelModel model{forward, host_devices(devices), Options{.output = host(0)}};
    const auto x = count_to(2);
    const auto [sizes, rows] = model(x);
    static_assert(std::is_same_v<decltype(sizes), const Tensor<int, 1>>);
    CHECK(sizes.size() == static_cast<std::size_t>(devices));
    CHECK(values(rows) == std::vector{0, 1});
    CHECK(rows.data() != x.data());
  }
}

TEST_CASE("rules 47 and 76: an empty list of devices is refused, so every model has a replica") {
  CHECK(says(message_of<InvalidDeviceId>([] { fanout::DeviceSet<HostDevice>(std::vector<HostDevice>{}); }),
             "Invalid device id", "at least one device of fanout::", "HostDevice", "found none"));
  CHECK(fanout::replicate(Tell{}, host_devices(1)).size() == 1);
}

TEST_CASE("rule 48: without a GPU a model runs on the host, and has replicas there") {
  const EnvironmentVariable as_the_machine("FANOUT_HOST_DEVICES", nullptr);
  const ParallelModel model{Tell{}};
  const auto told = model(count_to(1));
  CHECK(told == Texts{"host:0[0, 1)"});
  CHECK(model.devices().size() == host_devices().size());
}

TEST_CASE("rules 50 and 51: a call names the first array of the model in the wrong memory") {
  ParallelModel model{Placed{}, fanout::AllVisible<FarDevice>{}};
  const fanout::backend::Memory memory = model.devices()[0].memory();
  const auto x = Tensor<int, 1>::uninitialized({2}, memory);
  CHECK(says(message_of<fanout::DeviceMismatch>([&] { model(x); }),
             "must have its parameters and buffers on device far:0", "found one of them on device host:0",
             "at model.weight"));
  model.update([&](Placed& original) { original.weight = Tensor<int, 1>::uninitialized({1}, memory); });
  CHECK(model(x) == Texts{"the memory of far:0"});
}

TEST_CASE("rule 57: a model on the host is copied to devices with their own memory by its own rule") {
  const ParallelModel model{PlacesItself{}, fanout::AllVisible<FarDevice>{}};
  CHECK(model(Tensor<int, 1>::uninitialized({2}, model.devices()[0].memory())) == Texts{"the memory of far:0"});
  CHECK(model.model().weight.space() == fanout::host_memory);
}

TEST_CASE("rule 52: a replica has every member of the model, whatever it is") {
  ParallelModel model{Walker{}, host_devices(2)};
  model.update([](Walker& walker) {
    walker.step[0] = 5;
    walker.place = 10;
    walker.seen = {10};
  });
  CHECK(values(model(count_to(2))) == std::vector{15, 15});
  CHECK(model.replica(1).model().seen == std::vector{10, 15});
}

TEST_CASE("rule 124: the wrapped model is accessible with its own type and member names") {
  ParallelModel model{Walker{.place = 3}, host_devices(2)};
  static_assert(std::is_same_v<decltype(model.model()), const Walker&>);
  static_assert(std::is_same_v<decltype(model.replica(1).model()), const Walker&>);
  CHECK(model.model().place == 3);
  CHECK(model.update([](Walker& walker) { return ++walker.place; }) == 4);
}

namespace {

/// 100 small parameters, and one that is not small.
struct ManyParameters {
  std::vector<Tensor<float, 1>> small;
  Tensor<float, 1> large;
  void forward(fanout::View<const int, 1>) const {}
};

}  // namespace

TEST_CASE("rule 54: a replica on the device where the model's arrays lie shares them, the others have copies") {
  const fanout_test::RemoteDevice main(0);
  const ParallelModel model{fanout::to(ManyParameters{{}, Tensor<float, 1>(3)}, main), fanout_test::remote_devices(2)};
  model(count_to(2));
  CHECK(model.replica(0).model().large.data() == model.model().large.data());
  CHECK(model.replica(1).model().large.space() == fanout_test::RemoteDevice(1).memory().space);
}

TEST_CASE("rule 58: small parameters go to a device together, also when they are sent again") {
  ManyParameters parameters{std::vector(100, Tensor<float, 1>(50)), Tensor<float, 1>(1 << 20)};
  for (std::size_t i = 0; i < 100; ++i) parameters.small[i][49] = static_cast<float>(i);
  ParallelModel model{std::move(parameters), fanout_test::remote_devices(1)};
  auto& transferred = fanout_test::RemoteMemory::counts().transferred;
  int before = transferred;
  model(count_to(2));
  CHECK(transferred - before == 3);  // the input, the flat buffer, the large one
  CHECK(fanout::to_host(model.replica(0).model().small[99])[49] == 99);
  model.update([](ManyParameters& changed) { changed.small[7][49] = -1; });
  before = transferred;
  model(count_to(2));
  CHECK(transferred - before == 3);
  CHECK(fanout::to_host(model.replica(0).model().small[7])[49] == -1);
  CHECK(fanout::to_host(model.replica(0).model().small[99])[49] == 99);
}
