// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>

#include <fanout/array/view.hpp>
#include <fanout/model/model_fields.hpp>

namespace fanout { inline namespace v0 {

// Finds the fields through which the copies of a model would share an object that each of them may change.

namespace detail {

template <class P>
inline constexpr bool points_to_change = false;
template <class T>
inline constexpr bool points_to_change<T*> = !std::is_const_v<T> && !std::is_function_v<T>;

/// A pointer to a non-const object that counts its owners, as std::shared_ptr. Also one that is locked first, as
/// std::weak_ptr.
template <class X>
concept SharesToChange = requires(const X& x) {
  x.use_count();
  requires points_to_change<decltype(x.get())> || points_to_change<decltype(x.lock().get())>;
};

/// A reference to a non-const object that can be copied, as std::reference_wrapper.
template <class X>
concept RefersToChange = requires(const X& x) {
  typename X::type;
  { x.get() } -> std::same_as<typename X::type&>;
  requires std::convertible_to<const X&, typename X::type&>;
  requires points_to_change<typename X::type*>;
};

/// A view of non-const elements.
template <class X>
concept ShowsToChange = ShowsOthers<X> && !std::is_const_v<typename X::element_type>;

template <class X>
inline constexpr bool leads_to_change =
    points_to_change<X> || SharesToChange<X> || RefersToChange<X> || ShowsToChange<X>;
template <class T>
inline constexpr bool leads_to_change<T&> = points_to_change<T*>;

/// Fields whose copies lead to the same non-const object.
struct AliasingFields {
  static constexpr bool in_const = true;
  static constexpr bool in_own = true;
  template <class Declared>
  static constexpr bool is = leads_to_change<std::remove_cv_t<Declared>>;
};

/// A pointer or a reference to anything, also one that counts its owners: a device with its own memory cannot read the
/// host's.
template <class X>
inline constexpr bool leads_to_host = requires(const X& x) {
  x.use_count();
  x.get();
}
|| RefersToChange<X>;
template <class T>
inline constexpr bool leads_to_host<T*> = !std::is_function_v<T>;
template <class T>
inline constexpr bool leads_to_host<T&> = true;

/// Fields that a copy of a model in a device's own memory could not use there.
struct HostPointerFields {
  static constexpr bool in_const = true;
  static constexpr bool in_own = true;
  template <class Declared>
  static constexpr bool is = leads_to_host<std::remove_cv_t<Declared>>;
};

template <class Finding>
inline constexpr bool stays_on_the_host = !std::is_void_v<Finding>;

/// Refuses a model whose copy on a device with its own memory would point to host memory.
template <class M>
constexpr void refuse_host_pointers() {
  static_assert(
      !stays_on_the_host<find_field_t<HostPointerFields, M>>,
      "fanout: on a device with its own memory, a pointer or a reference in this model (this diagnostic shows its type "
      "and place) would lead to host memory; hold a Tensor, whose copies lie on the device, or copy the model in its "
      "own `M to(const Device&) const`, or let a factory make one for each device");
}

template <class Finding>
inline constexpr bool copies_are_apart = std::is_void_v<Finding>;

/// Refuses a model whose copies would share a non-const object. One function for each model, so that it is refused
/// once.
template <class M>
constexpr void refuse_aliasing() {
  static_assert(
      copies_are_apart<find_field_t<AliasingFields, M>>,
      "fanout: the copies of this model would all change one object through a pointer, a reference or a view (this "
      "diagnostic shows its type and place); hold the object itself or a pointer to const, share it as a Shared<T>, "
      "copy it in a `M to(const Device&) const` of the model, make forward const, or let a factory make one model for "
      "each device");
}

}  // namespace detail
}}  // namespace fanout::v0
