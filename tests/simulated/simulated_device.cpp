// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/simulated/simulated_device.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/device/completion.hpp>
#include <fanout/simulated/simulated_devices.hpp>

#include "device/device_conformance.hpp"

using fanout::simulated_devices;
using fanout::SimulatedDevice;
using fanout::backend::Completion;
using namespace std::chrono_literals;

namespace {

/// Three simulated devices that can be found, for the conformance suite.
struct FoundSimulated : SimulatedDevice {
  explicit FoundSimulated(const SimulatedDevice& device) : SimulatedDevice(device) {}
  static std::vector<FoundSimulated> visible() {
    static const auto devices =
        simulated_devices({{.launch = 1us}, {.rows_per_second = 1e3}, {.bandwidth = 1e9, .latency = 1us}});
    return std::vector<FoundSimulated>(devices.begin(), devices.end());
  }
};

}  // namespace

FANOUT_TEST_DEVICE(FoundSimulated);

TEST_CASE("no simulated device is visible, so a model on all of them is refused") {
  CHECK(SimulatedDevice::visible().empty());
  CHECK_THROWS_AS(fanout::AllVisible<SimulatedDevice>{}.select(), fanout::InvalidDeviceId);
}

TEST_CASE("the time of a simulated device depends on who asks") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e6}});
  {
    const auto entered = devices[0].enter();
    devices[0].ran(3);
    CHECK(devices[0].time() == 3'000);
    CHECK(devices[1].time() == 3'000);  // the time of this thread
    devices[0].synchronize();
    CHECK(devices[0].time() == 3'000);
  }
  CHECK(devices[0].time() == 0);
  CHECK(devices[1].time() == 0);
  devices[1].synchronize();
  CHECK(devices[0].time() == 0);
  devices[0].synchronize();
  CHECK(devices[0].time() == 3'000);
  const auto entered = devices[1].enter();
  CHECK(devices[1].time() == 3'000);
}

TEST_CASE("a completion moves the time to the end of the work before it, also of another thread") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}});
  Completion early;
  Completion late;
  {
    const auto entered = devices[0].enter();
    devices[0].ran(3);
    early = devices[0].completion();
    devices[0].ran(4);
    late = devices[0].completion();
  }
  CHECK(devices[0].time() == 0);
  early.wait();
  CHECK(devices[0].time() == 3'000);
  { const Completion dropped = std::move(late); }
  CHECK(devices[0].time() == 7'000);
}

TEST_CASE("a device's work begins when the thread that gives it is there") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}, {.rows_per_second = 1e6}});
  const auto outer = devices[0].enter();
  devices[0].ran(5);
  Completion inner_done;
  {
    const auto inner = devices[1].enter();
    devices[1].ran(2);
    CHECK(devices[1].time() == 7'000);
    inner_done = devices[1].completion();
  }
  CHECK(devices[0].time() == 5'000);
  inner_done.wait();
  CHECK(devices[0].time() == 7'000);
}

TEST_CASE("a thread that has entered nothing waits for a shard that it says has run") {
  const auto devices = simulated_devices({{.rows_per_second = 1e6}});
  devices[0].ran(5);
  CHECK(devices[0].time() == 5'000);
}
