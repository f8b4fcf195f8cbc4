// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/device/device_set.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call holds on its thread for devices of type D: nothing, or `D::thread_hold`.
template <class D>
struct ThreadHold {};
template <class D>
  requires requires { typename D::thread_hold; }
struct ThreadHold<D> {
  typename D::thread_hold hold;
};

/// The same for all devices of a set.
template <class Devices>
struct ThreadHolds;
template <class... Ds>
struct ThreadHolds<DeviceSet<Ds...>> : ThreadHold<Ds>... {};

}}}  // namespace fanout::v0::detail
