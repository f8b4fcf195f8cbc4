// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 {

/// A range of whole numbers: a list in braces, a vector, an array.
template <class R>
concept IndexRange = requires(const R& indices) {
  requires std::integral<std::remove_cvref_t<decltype(*std::begin(indices))>>;
};

/// Selects the devices at these positions of D::visible(), in the order given. The first is the main device. Throws
/// InvalidDeviceId if there is no index, if one is given twice, or if one is not visible. For the latter, the error
/// lists the visible devices.
template <Device D, IndexRange R = std::initializer_list<int>>
DeviceSet<D> devices_at(const R& indices) {
  const std::vector<D> visible = D::visible();
  std::vector<D> devices;
  for (const auto index : indices) {
    if (static_cast<std::size_t>(index) >= visible.size()) {  // a negative index becomes a large one
      detail::Text expected;
      expected << "the position of a visible device" << (visible.empty() ? ", of which there is none" : " (");
      for (const D& device : visible) expected << DeviceId(device.id()) << (&device == &visible.back() ? ")" : ", ");
      throw InvalidDeviceId(
          explain({.what = "Invalid device id", .expected = expected, .found = detail::Text() << index}));
    }
    devices.push_back(visible[static_cast<std::size_t>(index)]);
  }
  return DeviceSet<D>(std::move(devices));
}

namespace detail {

template <std::size_t N>
consteval bool all_different(const std::array<int, N>& numbers) {
  for (std::size_t i = 0; i < N; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (numbers[i] == numbers[j]) return false;
    }
  }
  return true;
}

}  // namespace detail

/// Selects visible devices of kind D by their positions, in the order given: `Indices<HostDevice, 0, 2>`. It selects as
/// devices_at() does, as a type. D is a Device.
template <class D, int... I>
struct Indices {
  static_assert(sizeof...(I) > 0, "fanout: Indices names at least one device");
  static_assert(((I >= 0) && ...), "fanout: Indices counts devices from 0, and has no negative ones");
  static_assert(detail::all_different(std::array<int, sizeof...(I)>{I...}), "fanout: Indices names each device once");

  /// Throws InvalidDeviceId for an index that is not visible.
  DeviceSet<D> select() const {
    if constexpr (Device<D>) {
      return devices_at<D>(std::array<int, sizeof...(I)>{I...});
    } else {
      return DeviceSet<D>(detail::visible_devices<D>());  // which refuses D
    }
  }
};

}}  // namespace fanout::v0
