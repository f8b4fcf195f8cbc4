// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: thread
#include <doctest/doctest.h>

#include <vector>

#include <fanout/device/host_device.hpp>
#include <fanout/parallel/parallel_model.hpp>

using fanout::DeviceSet;
using fanout::HostDevice;

namespace {

int holds = 0;

/// Counts the calls that hold something on their thread now.
struct Hold {
  Hold() { ++holds; }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { --holds; }
};

/// A host device whose calls hold something.
struct HeldDevice : HostDevice {
  using HostDevice::HostDevice;
  HeldDevice(const HostDevice& device) : HostDevice(device) {}  // NOLINT(google-explicit-constructor)
  using thread_hold = Hold;
  static std::vector<HeldDevice> visible() { return {HostDevice::visible()[0]}; }
};

}  // namespace

TEST_CASE("a call holds on its thread what its devices ask for, from before the shards to after the gathering") {
  int seen = 0;
  const auto forward = [&seen](int x) {
    seen = holds;
    return x;
  };
  const fanout::ParallelModel model{forward, DeviceSet<HeldDevice>(HeldDevice::visible())};
  CHECK(model(7)[0] == 7);
  CHECK(seen == 1);
  CHECK(holds == 0);
}
