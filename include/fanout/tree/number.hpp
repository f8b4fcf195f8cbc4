// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

// Arithmetic on numbers wherever they are combined: over shards after a call, and over ranks within a call.

/// The type by which a number is weighted or divided. For a complex number, the type of its parts.
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

/// A number narrower than float, for which arithmetic goes through float: half, bfloat16.
template <class T>
concept NarrowFloat =
    !std::is_arithmetic_v<T> && !std::is_enum_v<T> && sizeof(T) < sizeof(float) && requires(const T& x) {
  static_cast<float>(x);
  static_cast<T>(1.0F);
};

/// The type in which sums of many numbers are accumulated: double for all narrower floating types.
template <class T>
struct wide {
  using type = T;
};
template <std::floating_point T>
  requires(sizeof(T) < sizeof(double))
struct wide<T> {
  using type = double;
};
template <NarrowFloat T>
struct wide<T> {
  using type = double;
};
/// Complex numbers.
template <template <class> class C, class V>
  requires(std::same_as<typename wide<V>::type, double> && !std::same_as<V, double> && requires(const C<V>& x) {
    { x.imag() } -> std::same_as<V>;
    C<double>(1.0, 1.0);
    C<V>(x.real(), x.imag());
  })
struct wide<C<V>> {
  using type = C<double>;
};
template <class T>
using wide_t = typename wide<T>::type;

/// The number of floats that are added as floats. The error of so few is a few units in the last place, and doubles
/// take twice as long for arrays.
inline constexpr std::size_t added_as_floats = 16;

/// Converts to W, which is T or its wide type.
template <class W, class T>
constexpr W widened(const T& x) {
  if constexpr (std::same_as<W, T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else if constexpr (NarrowFloat<T>) {
    return static_cast<float>(x);
  } else {
    return {widened<double>(x.real()), widened<double>(x.imag())};
  }
}

/// Rounds a T, or a number of its wide type, to a T.
template <class T, class W>
constexpr T narrowed(const W& x) {
  if constexpr (std::same_as<W, T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else if constexpr (NarrowFloat<T>) {
    return static_cast<T>(static_cast<float>(x));  // not every such class can be made from a double
  } else {
    using Part = typename real_of<T>::type;
    return T(narrowed<Part>(x.real()), narrowed<Part>(x.imag()));
  }
}

/// The type for arithmetic on integers that wraps: unsigned, and none that is promoted to a signed type.
template <class T>
using wrapping_t = std::make_unsigned_t<decltype(T() + T())>;

/// Integers wrap. For signed ones the overflow of `a + b` would be undefined.
template <class T>
constexpr auto sum_of(const T& a, const T& b) -> decltype(a + b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
  } else {
    return a + b;
  }
}
template <class T>
constexpr auto difference_of(const T& a, const T& b) -> decltype(a - b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) - static_cast<wrapping_t<T>>(b));
  } else {
    return a - b;
  }
}
template <class T>
constexpr auto product_of(const T& a, const T& b) -> decltype(a * b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
  } else {
    return a * b;
  }
}

/// A type with < and ==, so that there is a greatest value.
template <class T>
concept Ordered = requires(const T& x) {
  { x < x } -> std::convertible_to<bool>;
  { x == x } -> std::convertible_to<bool>;
};

/// Always false under -ffast-math, which assumes that there are no NaNs.
template <class T>
constexpr bool is_nan(const T& x) {
  if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return false;
  } else {
    return !(x == x);
  }
}

}}}  // namespace fanout::v0::detail
