// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/all_visible.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/device/first_available.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <type_traits>
#include <vector>

#include <fanout/device/host_device.hpp>

#include "support/message_of.hpp"
#include "toy_device.hpp"

using fanout::DeviceSet;
using fanout::FirstAvailable;
using fanout::HostDevice;
using fanout_test::message_of;
using fanout_test::says;
using fanout_test::ToyDevice;

namespace {

/// Two kinds of device of which the machine has none.
template <int Kind>
struct NotThere : ToyDevice {
  static std::vector<NotThere> visible() { return {}; }
};

/// A kind that must not be asked.
struct NotAsked : ToyDevice {
  static std::vector<NotAsked> visible() {
    FAIL_CHECK("asked though another kind was there");
    return {};
  }
};

static_assert(fanout::DeviceSource<FirstAvailable<HostDevice>>);
static_assert(std::default_initializable<FirstAvailable<ToyDevice, HostDevice>>);
static_assert(
    std::is_same_v<decltype(FirstAvailable<ToyDevice, HostDevice>{}.select()), DeviceSet<ToyDevice, HostDevice>>);

}  // namespace

TEST_CASE("FirstAvailable selects all devices of the first kind that has any") {
  const auto toys = FirstAvailable<ToyDevice, HostDevice>{}.select();
  CHECK(toys.ids() == fanout::AllVisible<ToyDevice>{}.select().ids());
  const auto hosts = FirstAvailable<NotThere<0>, HostDevice, ToyDevice>{}.select();
  CHECK(hosts.ids() == fanout::host_devices().ids());
  CHECK(hosts.of_kind<0>().empty());
  CHECK(hosts.of_kind<1>() == HostDevice::visible());
  CHECK(hosts.of_kind<2>().empty());
}

TEST_CASE("FirstAvailable does not ask the kinds behind the one it takes") {
  CHECK(FirstAvailable<NotThere<0>, ToyDevice, NotAsked>{}.select().size() == 2);
}

TEST_CASE("FirstAvailable refuses kinds of which there are none, and names them") {
  const auto text = message_of<fanout::InvalidDeviceId>([] { (FirstAvailable<NotThere<1>, NotThere<2>>{}.select()); });
  CHECK(says(text, "Invalid device id", "at least one device of", "NotThere<1>", "NotThere<2>", "found none"));
}
