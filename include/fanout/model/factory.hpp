// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/model/original.hpp>

namespace fanout { inline namespace v0 {

/// Makes a model on each device instead of copying one; see factory().
template <class F>
struct Factory {
  F make;
};

/// For models that can be neither copied nor moved, as inference sessions and library handles. When the replicas are
/// made, `make` is called once for each device, as `make(device)` or else `make()`; what it returns is built in place:
///
///     fanout::ParallelModel model{fanout::factory([](const auto& device) { return Session(device.id()); }),
///                                 fanout::host_devices(2)};
///
/// The calls are made at the same time, so `make` is called as const; each with its device entered, which is then
/// waited for, on the thread of the device or, as shards are, on that of the caller. Should one throw, the constructor
/// throws FactoryError, after all have ended and those that were made are destroyed. `make` is destroyed when all are
/// made; the models are destroyed one after the other with the ParallelModel, on its thread, each with its device
/// entered.
///
/// There is no original, and so no update(). A const `forward` takes any number of calls at the same time; one that is
/// not const takes one call at a time on each device, and what it changes stays. Different kinds of devices may have
/// models of different types.
template <class F>
Factory<F> factory(F make) {
  return {std::move(make)};
}

/// Nothing but an address, by which the calls of such a model know each other.
template <class F>
struct detail::Original<Factory<F>> {
  Original() noexcept = default;
  Original(const Original&) = delete;
  Original& operator=(const Original&) = delete;
};

namespace detail {

template <class F, class D>
concept MakesForDevice = requires(const F& make, const D& device) {
  requires std::is_object_v<decltype(make(device))>;
};
template <class F>
concept Makes = requires(const F& make) {
  requires std::is_object_v<decltype(make())>;
};

/// Stands for the model of a factory that was refused, so that no call of it is a second error.
struct RefusedModel {
  template <class... A>
  float forward(const A&...) const {
    return 0;
  }
};

/// What the factory makes for a device.
template <class F, class D>
decltype(auto) make_model(const F& make, [[maybe_unused]] const D& device) {
  if constexpr (MakesForDevice<F, D>) {
    return make(device);
  } else if constexpr (Makes<F>) {
    return make();
  } else {
    static_assert(MakesForDevice<F, D> || Makes<F>,
                  "fanout: a factory is called as f(device) or f(), as const and for all devices at the same time, and "
                  "returns the model by value");
    return RefusedModel{};
  }
}
template <class F, class D>
using made_model_t = std::remove_cv_t<decltype(detail::make_model(std::declval<const F&>(), std::declval<const D&>()))>;

}  // namespace detail
}}  // namespace fanout::v0
