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

/// For models that can be neither copied nor moved, for example inference sessions and library handles. When the
/// replicas are made, `make` is called once for each device, as `make(device)` or else as `make()`. The model that it
/// returns is built in place:
///
///     fanout::ParallelModel model{fanout::factory([](const auto& device) { return Session(device.id()); }),
///                                 fanout::host_devices(2)};
///
/// The calls run at the same time, so `make` is called as const. Each call runs with its device entered, on the
/// device's thread or, as shards do, on the caller's thread. The device is waited for afterwards. If a call throws, the
/// constructor throws FactoryError. By then all calls have ended, and the models that were made are destroyed. `make`
/// is destroyed when all models are made. The models are destroyed one at a time with the ParallelModel, on its thread,
/// each with its device entered.
///
/// There is no original, and so no update(). A const `forward` takes any number of calls at the same time. A `forward`
/// that is not const takes one call at a time on each device, and what it changes stays. Different kinds of devices may
/// have models of different types.
template <class F>
Factory<F> factory(F make) {
  return {std::move(make)};
}

/// Only an address, by which a call tells that it runs inside another call of the same model.
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

/// Stands for the model of a refused factory, so that calls of it are no second error.
struct RefusedModel {
  template <class... A>
  float forward(const A&...) const {
    return 0;
  }
};

/// Makes the model for a device.
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
