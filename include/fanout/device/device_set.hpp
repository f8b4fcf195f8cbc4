// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/text.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/device/device.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Refuses a type that is no device. A `static_assert` instead of a constraint of DeviceSet, so that the error says
/// what to do. A function for each type, so that it is refused once, however many sets are made of it.
template <class D>
void refuse_no_device() {
  static_assert(Device<D>,
                "fanout: this type is not a Device: give it id(), memory(), worker(), enter(), synchronize(), a static "
                "visible(), == and copies, as the concept Device requires, or use host_devices(n)");
}

/// Returns D::visible(). Refuses a D that is no Device.
template <class D>
std::vector<D> visible_devices() {
  if constexpr (Device<D>) {
    return D::visible();
  } else {
    refuse_no_device<D>();
    return {};
  }
}

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_no_devices(std::string_view kinds);

/// Throws InvalidDeviceId for a device that is named twice.
[[gnu::cold]] FANOUT_INLINE void check_devices_differ(const std::vector<DeviceId>& ids);

/// The devices of a set, one kind after the other. In place of a std::tuple of vectors, which would cost each file with
/// a device set 23 million instructions of the compiler (g++ 12).
template <class... Ds>
struct DevicesByKind {
  void copy_ids(DeviceId*) const {}
  template <class F>
  void visit(std::size_t, F&) const {}
};
template <class D, class... Others>
struct DevicesByKind<D, Others...> {
  std::vector<D> first;
  DevicesByKind<Others...> others;

  explicit DevicesByKind(std::vector<D> of_first, std::vector<Others>... of_others)
      : first(std::move(of_first)), others(std::move(of_others)...) {}

  template <std::size_t K>
  const auto& of_kind() const noexcept {
    if constexpr (K == 0) {
      return first;
    } else {
      return others.template of_kind<K - 1>();
    }
  }

  void copy_ids(DeviceId* to) const {
    if constexpr (Device<D>) {
      for (const D& device : first) *to++ = device.id();
    } else {
      refuse_no_device<D>();
    }
    others.copy_ids(to);
  }

  template <class F>
  void visit(std::size_t i, F& f) const {
    if (i < first.size()) {
      f(first[i]);
    } else {
      others.visit(i - first.size(), f);
    }
  }
};

}  // namespace detail

/// An ordered set of at least one device. Its type names the kinds of the devices; their number is known at run time.
/// The first device is the main device. `a | b` joins two sets. Each of Ds is a Device.
template <class... Ds>
class DeviceSet {
  static_assert(sizeof...(Ds) >= 1, "fanout: a device set names at least one kind of device");

 public:
  /// True if devices of a kind may have a memory of their own.
  static constexpr bool has_own_memories = (HasOwnMemory<Ds> || ...);

  /// Takes the devices of each kind, in order. Throws InvalidDeviceId if there is no device, or if one occurs twice.
  explicit DeviceSet(std::vector<Ds>... devices)
      : ids_((devices.size() + ...), DeviceId{.kind = "host"}), devices_(std::move(devices)...) {
    devices_.copy_ids(ids_.data());
    if (ids_.empty()) {
      detail::Text kinds;
      ((kinds << (kinds.empty() ? "" : ", ") << detail::type_name_view<Ds>()), ...);
      detail::refuse_no_devices(kinds);
    }
    detail::check_devices_differ(ids_);
  }

  std::size_t size() const noexcept { return ids_.size(); }
  const std::vector<DeviceId>& ids() const noexcept { return ids_; }
  const DeviceId& main_device() const noexcept { return ids_[0]; }

  /// The devices of the K-th kind.
  template <std::size_t K>
  const auto& of_kind() const noexcept {
    return devices_.template of_kind<K>();
  }

  /// Calls `f(device)` with the device at position i < size(), as its own type. `f` returns nothing.
  template <class F>
  void visit(std::size_t i, F&& f) const {
    devices_.visit(i, f);
  }

  const auto& operator[](std::size_t i) const noexcept requires(sizeof...(Ds) == 1) { return devices_.first[i]; }
  auto begin() const noexcept requires(sizeof...(Ds) == 1) { return devices_.first.begin(); }
  auto end() const noexcept requires(sizeof...(Ds) == 1) { return devices_.first.end(); }

  /// Returns this set, so that a device set is a DeviceSource.
  const DeviceSet& select() const noexcept { return *this; }

  /// The devices of both sets, the left ones first. Throws InvalidDeviceId if they have a device in common.
  template <class... Others>
  friend auto operator|(const DeviceSet& left, const DeviceSet<Others...>& right) {
    if constexpr (sizeof...(Ds) == 1 && std::is_same_v<DeviceSet, DeviceSet<Others...>>) {
      auto all = left.template of_kind<0>();
      all.insert(all.end(), right.begin(), right.end());
      return DeviceSet(std::move(all));
    } else {
      return join(left, right, std::index_sequence_for<Ds...>{}, std::index_sequence_for<Others...>{});
    }
  }

 private:
  template <class... Others, std::size_t... I, std::size_t... J>
  static auto join(const DeviceSet& left, const DeviceSet<Others...>& right, std::index_sequence<I...>,
                   std::index_sequence<J...>) {
    return DeviceSet<Ds..., Others...>(left.template of_kind<I>()..., right.template of_kind<J>()...);
  }

  std::vector<DeviceId> ids_;
  detail::DevicesByKind<Ds...> devices_;
};

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/device/device_set.ipp>
#endif
