// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>

#include <fanout/device/device_set.hpp>
#include <fanout/device/device_source.hpp>
#include <fanout/device/host_device.hpp>
#include <fanout/parallel/options.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// The devices that a ParallelModel is made with.

/// A source whose device set has kinds that are no devices. The set itself refuses them.
template <class S>
concept SelectsNoDevices = requires(const S& source) {
  requires is_device_set<std::remove_cvref_t<decltype(source.select())>>;
  requires !is_set_of_devices<std::remove_cvref_t<decltype(source.select())>>;
};

/// The devices of a source. For a type that is no source, returns host devices after the static_assert, so that it is
/// the only error.
template <class Source>
decltype(auto) select_from(const Source& source) {
  if constexpr (DeviceSource<Source>) {
    return source.select();
  } else {
    if constexpr (SelectsNoDevices<Source>) {
      static_cast<void>(source.select());
    } else {
      static_assert(DeviceSource<Source>,
                    "fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives "
                    "one: host_devices(2) for a number, DeviceSet(std::vector{device}) for devices of your own choice");
    }
    return host_devices();
  }
}

/// What is given to a model as its devices, but cannot be its Source, nor its options.
template <class Given, class Source>
concept NotDevicesOf = !std::convertible_to<Given, const Source&> &&
                       !(std::default_initializable<Source> && std::convertible_to<Given, Options>);

/// Refuses devices of type Given for a model whose devices are a Source, unless Source is refused itself.
template <class Given, class Source>
constexpr void refuse_devices() {
  if constexpr (!DeviceSource<Given>) {
    static_cast<void>(&select_from<Given>);
  } else if constexpr (DeviceSource<Source>) {
    static_assert(std::same_as<Given, Source>,
                  "fanout: the type of this ParallelModel names other devices than it is given (this diagnostic shows "
                  "both types); for host_devices(2) write ParallelModel<M, DeviceSet<HostDevice>>");
  }
}

}}}  // namespace fanout::v0::detail
