// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device_source.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <vector>

#include <fanout/device/all_visible.hpp>
#include <fanout/device/host_device.hpp>

#include "toy_device.hpp"

using fanout::AllVisible;
using fanout::DeviceSet;
using fanout::DeviceSource;
using fanout::HostDevice;
using fanout_test::ToyDevice;

namespace {

struct Minimal {
  DeviceSet<HostDevice> select() const;
};
struct NoSelect {};
struct SelectNotConst {
  DeviceSet<HostDevice> select();
};
struct SelectsNoSet {
  std::vector<HostDevice> select() const;
};
struct NotCopyable {
  NotCopyable(const NotCopyable&) = delete;
  NotCopyable& operator=(const NotCopyable&) = delete;
  DeviceSet<HostDevice> select() const;
};
static_assert(DeviceSource<Minimal>);
static_assert(!DeviceSource<NoSelect>);
static_assert(!DeviceSource<SelectNotConst>);
static_assert(!DeviceSource<SelectsNoSet>);
static_assert(!DeviceSource<NotCopyable>);
static_assert(!DeviceSource<int>);
static_assert(!DeviceSource<DeviceSet<int>>);
static_assert(!DeviceSource<DeviceSet<HostDevice, int>>);
static_assert(!DeviceSource<AllVisible<int>>);
static_assert(!DeviceSource<HostDevice>, "one device is not a set");
static_assert(DeviceSource<DeviceSet<HostDevice>>);
static_assert(DeviceSource<DeviceSet<HostDevice, ToyDevice>>);
static_assert(DeviceSource<AllVisible<HostDevice>>);
static_assert(std::default_initializable<AllVisible<HostDevice>>);

}  // namespace

TEST_CASE("a device set selects itself") {
  const auto set = fanout::host_devices(2);
  CHECK(&set.select() == &set);
}
