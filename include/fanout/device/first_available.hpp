// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 {

/// Selects all visible devices of the first of these kinds that has any. So one program runs on the GPUs of one machine
/// and on the cores of another. Later kinds are not asked. Each of Ds is a Device.
template <class... Ds>
struct FirstAvailable {
  static_assert(sizeof...(Ds) > 0, "fanout: FirstAvailable names at least one kind of device");

  /// Throws InvalidDeviceId, which names the kinds, if none of them has a device.
  DeviceSet<Ds...> select() const {
    bool found = false;
    return DeviceSet<Ds...>{visible_unless<Ds>(found)...};  // braces evaluate from left to right
  }

 private:
  /// Returns nothing if `found` is true. Otherwise returns the visible devices, and sets `found` if there are any.
  template <class D>
  static std::vector<D> visible_unless(bool& found) {
    if (found) return {};
    std::vector<D> devices = detail::visible_devices<D>();
    found = !devices.empty();
    return devices;
  }
};

}}  // namespace fanout::v0
