// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device_source.hpp>
#include <fanout/device/indices.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/device/host_device.hpp>

#include "support/environment.hpp"
#include "support/message_of.hpp"
#include "toy_device.hpp"

using fanout::devices_at;
using fanout::DeviceSet;
using fanout::HostDevice;
using fanout::Indices;
using fanout::InvalidDeviceId;
using fanout_test::EnvironmentVariable;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

static_assert(fanout::DeviceSource<Indices<HostDevice, 0>>);
static_assert(fanout::DeviceSource<Indices<ToyDevice, 1, 0>>);
static_assert(std::default_initializable<Indices<HostDevice, 0, 2>>);
static_assert(std::is_empty_v<Indices<HostDevice, 0, 2>>);
static_assert(std::is_same_v<decltype(Indices<HostDevice, 0, 2>{}.select()), DeviceSet<HostDevice>>);

/// A kind of device of which the machine has none.
struct Missing : ToyDevice {
  static std::vector<Missing> visible() { return {}; }
};

}  // namespace

TEST_CASE("Indices selects visible devices by their positions, in the order given") {
  const EnvironmentVariable count("FANOUT_HOST_DEVICES", "3");
  const auto visible = HostDevice::visible();
  const auto set = Indices<HostDevice, 2, 0>{}.select();
  CHECK(std::vector<HostDevice>(set.begin(), set.end()) == std::vector<HostDevice>{visible[2], visible[0]});
  CHECK(to_string(set.main_device()) == "host:2");
  CHECK(Indices<ToyDevice, 1>{}.select()[0] == ToyDevice(1));
}

TEST_CASE("devices_at selects the same at run time") {
  const EnvironmentVariable count("FANOUT_HOST_DEVICES", "3");
  const std::vector<int> indices{2, 0};
  CHECK(devices_at<HostDevice>(indices).ids() == Indices<HostDevice, 2, 0>{}.select().ids());
  CHECK(devices_at<ToyDevice>(std::vector{1}).size() == 1);
}

TEST_CASE("an index that is not visible is an invalid device id, and the visible ones are listed") {
  const EnvironmentVariable count("FANOUT_HOST_DEVICES", "2");
  const auto text = message_of<InvalidDeviceId>([] { (Indices<HostDevice, 0, 2>{}.select()); });
  CHECK(says(text, "Invalid device id", "a visible device (host:0, host:1)", "found 2"));
  CHECK(says(message_of<InvalidDeviceId>([] { devices_at<ToyDevice>(std::vector{-1}); }), "Invalid device id",
             "(toy:0, toy:1)", "found -1"));
  CHECK(says(message_of<InvalidDeviceId>([] { devices_at<Missing>(std::vector{0}); }), "Invalid device id",
             "a visible device, of which there is none", "found 0"));
}

TEST_CASE("an index that is given twice is refused at run time too, and so is a list of none") {
  CHECK(says(message_of<InvalidDeviceId>([] {
               devices_at<ToyDevice>(std::vector{1, 0, 1});
             }),
             "Invalid device id", "toy:1 at positions 0 and 2"));
  CHECK(says(message_of<InvalidDeviceId>([] { devices_at<ToyDevice>({}); }), "Invalid device id",
             "at least one device of", "ToyDevice"));
}
