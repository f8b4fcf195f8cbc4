// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/all_visible.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <fanout/device/host_device.hpp>

#include "toy_device.hpp"

using fanout::AllVisible;
using fanout::HostDevice;
using fanout_test::ToyDevice;

namespace {

/// A kind of device of which the machine has none.
struct Absent : ToyDevice {
  static std::vector<Absent> visible() { return {}; }
};

}  // namespace

TEST_CASE("AllVisible selects the devices of its kind in their own order") {
  const auto hosts = AllVisible<HostDevice>{}.select();
  CHECK(std::vector<HostDevice>(hosts.begin(), hosts.end()) == HostDevice::visible());
  CHECK(hosts.ids() == fanout::host_devices().ids());
  const auto toys = AllVisible<ToyDevice>{}.select();
  CHECK(std::vector<ToyDevice>(toys.begin(), toys.end()) == ToyDevice::visible());
}

TEST_CASE("AllVisible of a kind that the machine lacks is an invalid device id") {
  static_assert(fanout::Device<Absent>);
  CHECK_THROWS_AS(AllVisible<Absent>{}.select(), fanout::InvalidDeviceId);
}
