// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace fanout { inline namespace v0 { namespace detail {

/// True if get_if() finds a T at this place of X. get_if() is found by its argument, so <variant> need not be included.
template <class X, std::size_t I, class T>
concept MayHoldAt = requires(const X* x) {
  { get_if<I>(x) } -> std::same_as<const T*>;
};

template <class X, class... T, std::size_t... I>
constexpr bool may_hold_each(std::index_sequence<I...>) {
  return (MayHoldAt<X, I, T> && ...);
}

/// The alternatives of a variant: of `std::variant`, and of similar templates that say when they hold none of them.
///
/// 1. `size`: the number of alternatives;
/// 2. `type<I>`: the I-th one;
/// 3. `get<I>(x)`: a reference to it, if `x` holds it.
template <class X>
struct AlternativesOf;

template <template <class...> class Variant, class... T>
  requires requires(const Variant<T...>& x) {
    { x.valueless_by_exception() } -> std::same_as<bool>;
    { x.index() } -> std::same_as<std::size_t>;
    requires may_hold_each<Variant<T...>, T...>(std::index_sequence_for<T...>());
  }
struct AlternativesOf<Variant<T...>> {
  static constexpr std::size_t size = sizeof...(T);

  template <std::size_t I>
  using type = std::tuple_element_t<I, std::tuple<T...>>;

  template <std::size_t I>
  static constexpr const auto& get(const Variant<T...>& x) noexcept {
    return *get_if<I>(&x);
  }
  template <std::size_t I>
  static constexpr auto& get(Variant<T...>& x) noexcept {
    return *get_if<I>(&x);
  }
};

/// A variant.
template <class X>
concept HasAlternatives = requires {
  AlternativesOf<X>::size;
};

/// Calls `f(constant)` with the place of the alternative that the variant holds, and returns its result. All results
/// have one type. The variant must hold an alternative.
template <HasAlternatives X, std::size_t I = 0, class F>
constexpr decltype(auto) at_alternative(const X& variant, const F& f) {
  if constexpr (I + 1 < AlternativesOf<X>::size) {
    if (variant.index() != I) return at_alternative<X, I + 1>(variant, f);
  }
  return f(std::integral_constant<std::size_t, I>());
}

}}}  // namespace fanout::v0::detail
