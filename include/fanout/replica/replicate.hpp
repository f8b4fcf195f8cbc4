// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/base/inline_array.hpp>
#include <fanout/call/settled_inputs.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/model/factory.hpp>
#include <fanout/model/per_replica.hpp>
#include <fanout/replica/combined_fields.hpp>
#include <fanout/replica/made_replica.hpp>
#include <fanout/replica/replica.hpp>
#include <fanout/sync/shared_mutex.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The model that is copied. For a factory, which has no such model, the factory.
template <class M>
struct model_of {
  using type = M;
};
template <HasOriginal M>
struct model_of<M> {
  using type = typename Original<M>::model_type;
};

struct NoMutex {};

}  // namespace detail

/// A model and its replicas on the devices of a set, in the order of the set. replicate() makes it, and apply() runs
/// it, from any number of threads. It owns the model. It cannot be moved, since the replicas point into it.
template <class M, Device... Ds>
class Replicas {
 public:
  using model_type = typename detail::model_of<M>::type;

  /// Takes over the model.
  Replicas(M&& model, const DeviceSet<Ds...>& devices) requires detail::HasOriginal<M>
      : original_{std::move(model)}, devices_(devices), replicas_(make_all(std::index_sequence_for<Ds...>{})) {
    detail::settle_model(original_.model, devices_);
  }

  /// Makes a model on each device, at the same time, and waits for all of them. Throws FactoryError if the factory
  /// throws. Does not keep the factory.
  Replicas(const M& factory, const DeviceSet<Ds...>& devices) requires(!detail::HasOriginal<M>)
      : devices_(devices), replicas_(make_all(std::index_sequence_for<Ds...>{})) {
    detail::settle_model(factory.make, devices_);
    detail::make_models(factory.make, *this);
  }
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  const DeviceSet<Ds...>& devices() const noexcept { return devices_; }
  /// The same devices, for code that does not depend on their kinds.
  const detail::DeviceTable& table() const noexcept { return table_; }

  /// The original, or an empty stand-in for a factory. To change it, increase its version while no call runs.
  const detail::Original<M>& original() const noexcept { return original_; }
  detail::Original<M>& original() noexcept { return original_; }

  /// The mutex of the combined fields: exclusive for calls that may change them, shared for calls that only read them.
  detail::SharedMutex& combined_mutex() const noexcept requires detail::has_combined_fields<model_type> {
    return combined_gate_;
  }

  /// The number of replicas: one for each device, at least one.
  std::size_t size() const noexcept { return devices_.size(); }

  /// Calls `f(replica)` with the replica at position i < size(), as its own type. `f` returns nothing.
  template <std::size_t K = 0, class F>
  void visit(std::size_t i, F&& f) const {
    const auto& of_kind = std::get<K>(replicas_);
    if (K + 1 == sizeof...(Ds) || i < of_kind.size()) {
      f(of_kind[i]);
    } else if constexpr (K + 1 < sizeof...(Ds)) {
      visit<K + 1>(i - of_kind.size(), f);
    }
  }

  const auto& operator[](std::size_t i) const noexcept requires(sizeof...(Ds) == 1) {
    return std::get<0>(replicas_)[i];
  }

 private:
  template <class D>
  struct MakeAll;
  template <class D>
  class OfKind : public detail::InlineArray<Replica<M, D>, 2> {
   public:
    OfKind(const MakeAll<D>& make)  // NOLINT(google-explicit-constructor): built in place by the tuple
        : detail::InlineArray<Replica<M, D>, 2>(make.devices.size(), make) {}
  };
  template <class D>
  struct MakeAll {
    const detail::Original<M>& original;
    const std::vector<D>& devices;
    Replica<M, D> operator()(std::size_t i) const { return Replica<M, D>(original, devices[i]); }
  };

  template <std::size_t... K>
  std::tuple<OfKind<Ds>...> make_all(std::index_sequence<K...>) const {
    return {MakeAll<Ds>{original_, devices_.template of_kind<K>()}...};
  }

  // Mutable, since a call, which is const, writes the combined fields.
  mutable detail::Original<M> original_;
  using CombinedGate =
      std::conditional_t<detail::has_combined_fields<model_type>, detail::SharedMutex, detail::NoMutex>;
  [[no_unique_address]] mutable CombinedGate combined_gate_;
  DeviceSet<Ds...> devices_;
  const detail::DeviceTable table_{devices_};
  std::tuple<OfKind<Ds>...> replicas_;
};

/// Makes a replica of the model on each device of the set. The returned Replicas owns the model; apply() runs it.
/// Nothing is copied yet, and no thread is started: a replica copies the model at its first call if it needs a copy
/// (see Replica). A factory() makes a model on each device instead. replicate() then waits for all of them, and throws
/// FactoryError if the factory throws.
template <class M, Device... Ds>
Replicas<M, Ds...> replicate(M model, const DeviceSet<Ds...>& devices) {
  return {std::move(model), devices};
}

}}  // namespace fanout::v0
