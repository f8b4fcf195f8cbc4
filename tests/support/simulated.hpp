// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/simulated.hpp>

namespace fanout_test {

/// So many simulated devices, all of them like this.
inline fanout::DeviceSet<fanout::SimulatedDevice> simulated(std::size_t count,
                                                            const fanout::SimulatedDeviceOptions& each = {}) {
  return fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(count, each));
}

}  // namespace fanout_test
