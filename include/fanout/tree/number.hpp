// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>

namespace fanout::inline v0::detail {

// What is asked of numbers wherever they are combined: over shards after a call, and over ranks within one.

/// What a number is weighed or divided by: of a complex one, the type of its parts.
template <class T>
struct real_of {
  using type = T;
};
template <class T>
  requires requires(const T& x) {
    { x.imag() } -> std::same_as<typename T::value_type>;
  }
struct real_of<T> {
  using type = typename T::value_type;
};

/// Those of which there is a greatest.
template <class T>
concept Ordered = requires(const T& x) {
  { x < x } -> std::convertible_to<bool>;
  { x == x } -> std::convertible_to<bool>;
};

/// Never under -ffast-math, by which there are none.
template <class T>
constexpr bool is_nan(const T& x) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return false;
  } else {
    return !(x == x);
  }
}

}  // namespace fanout::inline v0::detail
