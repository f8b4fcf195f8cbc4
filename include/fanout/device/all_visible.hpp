// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 {

/// Selects all devices of kind D that the process may use, in the order of D::visible(). D is a Device.
template <class D>
struct AllVisible {
  /// Throws InvalidDeviceId if there is none.
  DeviceSet<D> select() const { return DeviceSet<D>(detail::visible_devices<D>()); }
};

}}  // namespace fanout::v0
