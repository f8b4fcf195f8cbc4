// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <fanout/device/device_set.hpp>
#include <fanout/device/host_device.hpp>
#if __has_include(<fanout/waiting/wait_policy.hpp>)
#include <fanout/waiting/wait_policy.hpp>
#endif

#include <harness/slice.hpp>

namespace benchmarks {

/// Two host devices, each on a core of its own, that wait as the key wait says: adaptive, spin or park.
inline fanout::DeviceSet<fanout::HostDevice> two_host_devices(Slice& slice) {
  const std::string wait = slice.text("wait", "adaptive");
#if __has_include(<fanout/waiting/wait_policy.hpp>)
  if (wait == "spin") return fanout::host_devices({.count = 2, .wait = fanout::Spin{}});
  if (wait == "park") return fanout::host_devices({.count = 2, .wait = fanout::Park{}});
#else
  if (wait == "spin" || wait == "park") slice.skip("there are no policies of waiting yet");
#endif
  if (wait != "adaptive") slice.fault("no policy " + wait);
  return fanout::host_devices(2);
}

}  // namespace benchmarks
