// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class D>
concept TellsFreeMemory = requires(const D& device) {
  { device.free_memory() } -> std::convertible_to<std::size_t>;
};

}  // namespace detail

/// Selects all devices of kind D that the process may use, those with more free memory first. So the main device has
/// the most. Equal ones keep their order. D is a Device with a member `free_memory()`, which returns bytes. Each
/// selection calls it once per device. On a GPU that creates a context.
template <class D>
struct MostFreeMemory {
  /// Throws InvalidDeviceId if there is no device, and what free_memory() throws.
  DeviceSet<D> select() const {
    std::vector<D> devices = detail::visible_devices<D>();
    if constexpr (Device<D>) {
      static_assert(detail::TellsFreeMemory<D>,
                    "fanout: MostFreeMemory needs free_memory(), and this kind of device has none; use AllVisible");
      if constexpr (detail::TellsFreeMemory<D>) sort(devices);
    }
    return DeviceSet<D>(std::move(devices));
  }

 private:
  static void sort(std::vector<D>& devices) {
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      free.push_back(devices[i].free_memory());
      for (std::size_t k = i; k > 0 && free[k - 1] < free[k]; --k) {
        std::swap(free[k - 1], free[k]);
        std::swap(devices[k - 1], devices[k]);
      }
    }
  }
};

}}  // namespace fanout::v0
