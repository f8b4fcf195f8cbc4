// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/device/host_device.hpp>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/worker/cores.hpp>
#include <fanout/worker/registry.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Reads a number from 1 to most_host_devices. Returns 0 for any other text.
inline int device_count_from(std::string_view text) {
  int count = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || count > most_host_devices) return 0;
    count = 10 * count + (c - '0');
  }
  return count > most_host_devices ? 0 : count;
}

inline DeviceSet<HostDevice> make_host_devices(int count, int cores_each, bool pin, Waiting wait) {
  if (count < 1 || count > most_host_devices || cores_each < 0) {
    throw InvalidDeviceId(explain(
        {.what = "Invalid device id",
         .where = "host_devices",
         .expected = Text() << "1 to " << most_host_devices << " devices of at least one core (0: an equal share)",
         .found = Text() << count << " devices, " << cores_each << " cores each",
         .advice = "host_devices() makes one device per core"}));
  }
  const std::vector<int>& cores = backend::registry().cores();
  const auto devices_wanted = static_cast<std::size_t>(count);
  const std::size_t share = cores_each > 0 ? static_cast<std::size_t>(cores_each)
                                           : (cores.size() < devices_wanted ? 1 : cores.size() / devices_wanted);
  const std::size_t quota = quota_cores();
  const bool bound =
      pinning_allowed() && pin && devices_wanted <= cores.size() / share && (quota == 0 || quota >= cores.size());
  std::vector<HostDevice> devices;
  for (std::size_t i = 0; i < devices_wanted; ++i) {
    const DeviceId id{.kind = "host", .index = static_cast<int>(i)};
    const auto own = [&] { return std::vector<int>(cores.data() + i * share, cores.data() + (i + 1) * share); };
    devices.emplace_back(backend::registry().worker(id, bound ? own() : cores, bound), wait);
  }
  return DeviceSet<HostDevice>(std::move(devices));
}

}  // namespace detail

std::vector<HostDevice> HostDevice::visible() { return host_devices().of_kind<0>(); }

int host_device_count() {
  if (const char* setting = std::getenv("FANOUT_HOST_DEVICES")) {
    if (const int count = detail::device_count_from(setting)) return count;
    throw InvalidArgument(
        explain({.what = "environment variable FANOUT_HOST_DEVICES",
                 .expected = detail::Text() << "a whole number from 1 to " << detail::most_host_devices,
                 .found = detail::Text() << '"' << setting << '"',
                 .advice = "unset it to get one device per core that this process may use"}));
  }
  const std::size_t cores = detail::tighter(backend::registry().cores().size(), detail::quota_cores());
  return static_cast<int>(detail::tighter(cores, detail::most_host_devices));
}

DeviceSet<HostDevice> host_devices(const HostDeviceOptions& options) {
  return detail::make_host_devices(options.count == 0 ? host_device_count() : options.count, options.cores_each,
                                   options.pin, options.wait);
}

DeviceSet<HostDevice> host_devices() { return host_devices(HostDeviceOptions{}); }

DeviceSet<HostDevice> host_devices(int count) { return detail::make_host_devices(count, 0, true, Adaptive()); }

}}  // namespace fanout::v0
