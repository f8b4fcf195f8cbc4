// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>

#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class S>
inline constexpr bool is_device_set = false;
template <class... Ds>
inline constexpr bool is_device_set<DeviceSet<Ds...>> = true;

template <class S>
inline constexpr bool is_set_of_devices = false;
template <Device... Ds>
inline constexpr bool is_set_of_devices<DeviceSet<Ds...>> = true;

}  // namespace detail

/// Where a model gets its devices from: a device set, or a policy that selects one when the model is made.
///
/// 1. `select()` returns a DeviceSet, or throws InvalidDeviceId.
template <class S>
concept DeviceSource = std::copyable<S> && requires(const S& source) {
  requires detail::is_set_of_devices<std::remove_cvref_t<decltype(source.select())>>;
};

}}  // namespace fanout::v0
