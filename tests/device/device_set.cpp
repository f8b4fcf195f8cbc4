// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <fanout/device/device_set.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fanout/device/host_device.hpp>

#include "toy_device.hpp"

using fanout::DeviceId;
using fanout::DeviceSet;
using fanout::HostDevice;
using fanout_test::ToyDevice;

namespace {

std::string message_of(std::vector<HostDevice> hosts, std::vector<ToyDevice> toys) {
  try {
    const DeviceSet<HostDevice, ToyDevice> set(std::move(hosts), std::move(toys));
  } catch (const fanout::InvalidDeviceId& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

template <class... Ds>
std::vector<std::string> visited(const DeviceSet<Ds...>& set) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < set.size(); ++i) {
    set.visit(i, [&names](const auto& device) { names.push_back(to_string(DeviceId(device.id()))); });
  }
  return names;
}

}  // namespace

TEST_CASE("a device set keeps the order of its devices, the first of which is the main device") {
  const std::vector<HostDevice> all = HostDevice::visible();
  const auto three = fanout::host_devices(3);
  const DeviceSet<HostDevice> set({three[2], three[0], three[1]});
  REQUIRE(set.size() == 3);
  CHECK(set.main_device() == DeviceId{.kind = "host", .index = 2});
  CHECK(set[0] == three[2]);
  CHECK(set[1] == three[0]);
  CHECK(set.of_kind<0>().size() == 3);
  CHECK(std::vector<HostDevice>(set.begin(), set.end()) == std::vector<HostDevice>{three[2], three[0], three[1]});
  CHECK(visited(set) == std::vector<std::string>{"host:2", "host:0", "host:1"});
  CHECK(&set.select() == &set);
}

TEST_CASE("a set of no devices is refused with the words `Invalid device id`") {
  CHECK_THROWS_AS(DeviceSet<HostDevice>(std::vector<HostDevice>{}), fanout::InvalidDeviceId);
  const std::string text = message_of({}, {});
  CHECK(contains(text, "Invalid device id"));
  CHECK(contains(text, "at least one device of "));
  CHECK(contains(text, "HostDevice, fanout_test::ToyDevice"));
  CHECK(message_of({}, {ToyDevice(0)}).empty());  // one kind may be missing
  CHECK(message_of({fanout::host_devices(1)[0]}, {}).empty());
}

TEST_CASE("a device that stands twice is refused, and the message says which and where") {
  const auto two = fanout::host_devices(2);
  const std::string text = message_of({two[1], two[0], two[1]}, {});
  CHECK(contains(text, "Invalid device id"));
  CHECK(contains(text, "host:1 at positions 0 and 2"));
  CHECK(contains(message_of({two[0]}, {ToyDevice(1), ToyDevice(1)}), "toy:1 at positions 1 and 2"));
  CHECK_THROWS_AS(two | two, fanout::InvalidDeviceId);
  try {
    (void)(two | fanout::host_devices(1));  // host:0, with other cores
    FAIL("a device twice was not refused");
  } catch (const fanout::InvalidDeviceId& error) {
    CHECK(contains(error.what(), "host:0 at positions 0 and 2"));
    CHECK(contains(error.what(), "select all devices of one kind in one set"));
  }
}

TEST_CASE("two kinds in one set are visited as their own types, in order") {
  const auto hosts = fanout::host_devices(2);
  const DeviceSet<ToyDevice> toys({ToyDevice(1), ToyDevice(0)});
  const auto mixed = hosts | toys;
  static_assert(std::is_same_v<decltype(mixed), const DeviceSet<HostDevice, ToyDevice>>);
  CHECK(mixed.size() == 4);
  CHECK(mixed.main_device() == hosts[0].id());
  CHECK(mixed.of_kind<0>().size() == 2);
  CHECK(mixed.of_kind<1>()[0] == ToyDevice(1));
  CHECK(visited(mixed) == std::vector<std::string>{"host:0", "host:1", "toy:1", "toy:0"});
  REQUIRE(mixed.ids().size() == 4);
  CHECK(mixed.ids()[2] == DeviceId{.kind = "toy", .index = 1});

  std::string kinds;
  const auto kind = [&kinds](const auto& device) {
    kinds += std::is_same_v<std::remove_cvref_t<decltype(device)>, ToyDevice> ? 't' : 'h';
  };
  for (std::size_t i = 0; i < mixed.size(); ++i) mixed.visit(i, kind);
  CHECK(kinds == "hhtt");
}

TEST_CASE("the main device is the first there is, also if the first kind has none") {
  const DeviceSet<HostDevice, ToyDevice> set({}, {ToyDevice(1)});
  CHECK(set.main_device() == DeviceId{.kind = "toy", .index = 1});
  CHECK(visited(set) == std::vector<std::string>{"toy:1"});
}

TEST_CASE("sets of one kind are joined to a set of that kind, others to a set of both") {
  const auto hosts = fanout::host_devices(3);
  const DeviceSet<HostDevice> left({hosts[2]});
  const DeviceSet<HostDevice> right({hosts[0], hosts[1]});
  const auto joined = left | right;
  static_assert(std::is_same_v<decltype(joined), const DeviceSet<HostDevice>>);
  CHECK(visited(joined) == std::vector<std::string>{"host:2", "host:0", "host:1"});
  const DeviceSet<ToyDevice> toy({ToyDevice(0)});
  CHECK(visited(toy | joined) == std::vector<std::string>{"toy:0", "host:2", "host:0", "host:1"});
  const auto three_kinds = left | toy | right;
  static_assert(std::is_same_v<decltype(three_kinds), const DeviceSet<HostDevice, ToyDevice, HostDevice>>);
  CHECK(visited(three_kinds) == std::vector<std::string>{"host:2", "toy:0", "host:0", "host:1"});
}
