// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

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

/// Numbers narrower than a float that are computed with by way of it: half, bfloat16.
template <class T>
concept NarrowFloat =
    !std::is_arithmetic_v<T> && !std::is_enum_v<T> && sizeof(T) < sizeof(float) && requires(const T& x) {
  static_cast<float>(x);
  static_cast<T>(1.0F);
};

/// In what sums of many numbers are kept until they are done: double for all floating ones that are narrower.
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

/// How many floats are added as they are: so few make an error of a few units in the last place, and doubles take twice
/// as long for arrays.
inline constexpr std::size_t added_as_floats = 16;

/// As a W, which is T or its wide type.
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

/// A T or a number of its wide type, rounded to a T.
template <class T, class W>
constexpr T narrowed(const W& x) {
  if constexpr (std::same_as<W, T>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(x);
  } else if constexpr (NarrowFloat<T>) {
    return static_cast<T>(static_cast<float>(x));  // not every such class is made from a double
  } else {
    using Part = typename real_of<T>::type;
    return T(narrowed<Part>(x.real()), narrowed<Part>(x.imag()));
  }
}

/// In what whole numbers are computed with, so that they wrap: unsigned, and no type that is promoted to a signed one.
template <class T>
using wrapping_t = std::make_unsigned_t<decltype(T() + T())>;

/// Whole numbers wrap, where `a + b` of signed ones would be undefined.
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

}}}  // namespace fanout::v0::detail
