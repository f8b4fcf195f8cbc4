// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include <fanout/base/inline_array.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/parallel/replica.hpp>

namespace fanout::inline v0 {

/// The replicas of one model on the devices of a set, in its order. They borrow the original.
template <class M, Device... Ds>
class Replicas {
 public:
  Replicas(const Original<M>& original, const DeviceSet<Ds...>& devices)
      : Replicas(original, devices, std::index_sequence_for<Ds...>{}) {}

  const DeviceSet<Ds...>& devices() const noexcept { return devices_; }
  const Original<M>& original() const noexcept { return *original_; }
  std::size_t size() const noexcept { return devices_.size(); }

  /// Calls `f(replica)` for the replica at position i < size(), as its own type. f returns nothing.
  template <class F>
  void visit(std::size_t i, F&& f) const {
    visit_from<0>(i, f);
  }

  const auto& operator[](std::size_t i) const noexcept requires(sizeof...(Ds) == 1) {
    return std::get<0>(replicas_)[i];
  }

 private:
  template <std::size_t... K>
  Replicas(const Original<M>& original, const DeviceSet<Ds...>& devices, std::index_sequence<K...>)
      : original_(&original), devices_(devices), replicas_(MakeAll<Ds>{original, devices.template of_kind<K>()}...) {}

  template <class D>
  struct MakeAll;
  template <class D>
  class OfKind : public InlineArray<Replica<M, D>, 2> {
   public:
    OfKind(const MakeAll<D>& make)  // NOLINT(google-explicit-constructor): built in place by the tuple
        : InlineArray<Replica<M, D>, 2>(make.devices.size(), make) {}
  };
  template <class D>
  struct MakeAll {
    const Original<M>& original;
    const std::vector<D>& devices;
    Replica<M, D> operator()(std::size_t i) const { return Replica<M, D>(original, devices[i]); }
  };

  template <std::size_t K, class F>
  void visit_from(std::size_t i, F& f) const {
    if constexpr (K < sizeof...(Ds)) {
      const auto& of_kind = std::get<K>(replicas_);
      if (i < of_kind.size()) {
        f(of_kind[i]);
      } else {
        visit_from<K + 1>(i - of_kind.size(), f);
      }
    }
  }

  const Original<M>* original_;
  DeviceSet<Ds...> devices_;
  std::tuple<OfKind<Ds>...> replicas_;
};

/// A replica of the model on each device. Copies nothing on devices that share the original's memory.
template <class M, Device... Ds>
Replicas<M, Ds...> replicate(const Original<M>& original, const DeviceSet<Ds...>& devices) {
  return {original, devices};
}

}  // namespace fanout::inline v0
