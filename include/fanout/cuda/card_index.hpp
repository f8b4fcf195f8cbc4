// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/cuda/card.hpp>
#include <fanout/cuda/status.hpp>

namespace fanout::inline v0::cuda {

namespace detail {

/// The index of the thread's current device. Makes no context.
inline int current_index() {
  refuse_fork();
  const CardCount known = count_cards();
  if (known.count == 0) {
    throw InvalidDeviceId(explain({.what = "No CUDA GPUs are available", .found = text_of(known.status)}));
  }
  int index = 0;
  check(::cudaGetDevice(&index), "cudaGetDevice");
  return index;
}

}  // namespace detail

/// Which card something is asked about: an index among the visible ones, a device, or by default the thread's current
/// device. It is looked at where it is used, not here.
class CardIndex {
 public:
  CardIndex() noexcept = default;
  CardIndex(int index) noexcept : given_(true), index_(index) {}  // NOLINT(google-explicit-constructor): is an index
  template <class D>
    requires requires(const D& device) {
      { device.id() } -> std::convertible_to<DeviceId>;
    }
  CardIndex(const D& device) noexcept : CardIndex(index_of(device.id())) {}  // NOLINT(google-explicit-constructor)

  /// Throws InvalidDeviceId, `Invalid device id`, if there is no such card.
  int get() const { return card().index(); }
  detail::Card& card() const { return detail::card_at(given_ ? index_ : detail::current_index()); }
  /// The same, with the words `Invalid peer device id`.
  int get_peer() const {
    const int index = given_ ? index_ : detail::current_index();
    if (index < 0 || index >= detail::count_cards().count) detail::refuse_index(index, "Invalid peer device id");
    return index;
  }

 private:
  static int index_of(const DeviceId& id) noexcept { return id.kind == DeviceKind("cuda") ? id.index : -1; }

  bool given_ = false;
  int index_ = -1;
};

}  // namespace fanout::inline v0::cuda
