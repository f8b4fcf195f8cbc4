// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/device/device_set.hpp>
#include <fanout/device/host_device.hpp>

#include <harness/slice.hpp>

namespace benchmarks {

/// Two host devices, each on a core of its own: as they come, or what else the key wait says.
inline fanout::DeviceSet<fanout::HostDevice> two_host_devices(Slice& slice) {
  const std::string wait = slice.text("wait", "default");
  if (wait != "default") slice.fault("no way to wait is called " + wait);
  return fanout::host_devices(2);
}

}  // namespace benchmarks
