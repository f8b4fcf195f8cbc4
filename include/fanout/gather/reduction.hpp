// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/number.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A function without state. It is the same on all shards, so it need not be stored.
template <class F>
concept Stateless = std::is_empty_v<F> && std::default_initializable<F>;

/// F combines two numbers of type T, and its result can be stored as a T. The result is a T. Or both are integers: `+`
/// of small ones is an int. Or T is a class that can be made from it, as a half from a float.
template <class F, class T>
concept CombinesTwo = Scalar<T> && requires(const T& x) {
  requires std::same_as<std::remove_cvref_t<decltype(F()(x, x))>, T> ||
      (std::is_integral_v<T> && std::is_integral_v<std::remove_cvref_t<decltype(F()(x, x))>>) ||
      (std::is_class_v<T> && std::constructible_from<T, decltype(F()(x, x))>);
};

struct Add {
  template <class T>
  constexpr auto operator()(const T& a, const T& b) const -> decltype(a + b) {
    return sum_of(a, b);
  }
};

struct Greater {
  template <Ordered T>
  constexpr T operator()(const T& a, const T& b) const {
    return a < b || is_nan(b) ? b : a;
  }
};
struct Less {
  template <Ordered T>
  constexpr T operator()(const T& a, const T& b) const {
    return b < a || is_nan(b) ? b : a;
  }
};

}  // namespace detail

namespace rules {

// A reduction rule combines the numbers that the shards return at one place. It has
//
// 1. `name`: the name of the function that the user called, for errors;
// 2. `takes<T>`: true if it combines numbers of type T;
// 3. `counts_empty`: true if a shard without rows counts even if other shards have rows;
// 4. `accumulated<T>`: the type in which the result may be accumulated, to be rounded to a T once at the end;
// 5. `first<T, A>(x, share)`: the result after the first shard, and `next<T, A>(so_far, x, share)`: the result after
//    each further one, in row order. A is T or accumulated<T>. `share` is the shard's share of all rows.

/// The rule that folds the shards' values in row order: `F()(F()(x0, x1), x2)` for three shards.
template <class F>
struct Fold {
  static constexpr const char* name = "reduce";
  template <class T>
  static constexpr bool takes = detail::CombinesTwo<F, T>;
  static constexpr bool counts_empty = false;
  template <class T>
  using accumulated = T;

  template <class T, std::same_as<T> A = T>
  static A first(const T& x, double) {
    return x;
  }
  template <class T, std::same_as<T> A = T>
  static A next(const std::type_identity_t<A>& so_far, const T& x, double) {
    return static_cast<T>(F()(so_far, x));
  }
};

/// The rule that adds the shards' values. Floating-point and complex numbers are added as doubles and rounded once at
/// the end. Floats of few shards are added as floats. A long double is added as its own type, and so is a class of
/// numbers that is not narrower than a float. Integers wrap around.
struct Sum : Fold<detail::Add> {
  static constexpr const char* name = "psum";
  /// Numbers of any type except bools and enums. The sum has the same type.
  template <class T>
  static constexpr bool takes = Fold<detail::Add>::takes<T> && !std::is_enum_v<T> && !std::same_as<T, bool>;
  static constexpr bool counts_empty = true;
  template <class T>
  using accumulated = detail::wide_t<T>;

  template <class T, class A = accumulated<T>>
  static A first(const T& x, double) {
    return detail::widened<A>(x);
  }
  template <class T, class A = accumulated<T>>
  static A next(const std::type_identity_t<A>& so_far, const T& x, double) {
    return static_cast<A>(detail::Add()(so_far, detail::widened<A>(x)));
  }
};

/// The rule that takes the greatest value. Of equal ones, it takes that of the lowest rows. NaN counts as the greatest.
struct Max : Fold<detail::Greater> {
  static constexpr const char* name = "pmax";
};

/// The rule that takes the least value. Of equal ones, it takes that of the lowest rows. NaN counts as the least.
struct Min : Fold<detail::Less> {
  static constexpr const char* name = "pmin";
};

/// The rule that computes the mean over all rows from the means of the shards, weighted by their rows. Without rows,
/// all shards have the same weight. Adds like Sum.
struct Mean {
  static constexpr const char* name = "pmean";
  /// Only floating-point and complex numbers: the mean of integers is no integer.
  template <class T>
  static constexpr bool takes = Sum::takes<T> && !std::is_integral_v<T>;
  static constexpr bool counts_empty = false;
  template <class T>
  using accumulated = detail::wide_t<T>;

  template <class T, class A = accumulated<T>>
  static A first(const T& x, double share) {
    return static_cast<A>(detail::widened<A>(x) * static_cast<typename detail::real_of<A>::type>(share));
  }
  template <class T, class A = accumulated<T>>
  static A next(const std::type_identity_t<A>& so_far, const T& x, double share) {
    return static_cast<A>(so_far + first<T, A>(x, share));
  }
};

}  // namespace rules

/// `return psum(x)`: the sum over the shards, element by element for arrays, leaf by leaf for trees. Numbers and
/// elements keep their type. Views and outputs become tensors, spans become vectors. The call throws ShapeMismatch if
/// arrays have different extents. The host adds in row order, so the result is the same in every run. Integers wrap
/// around. Floating-point numbers are added as doubles and rounded once. With n shards the error is at most half a unit
/// in the last place of the result, plus n * 2^-53 times the sum of the absolute values. Floats of up to 16 shards are
/// added as floats: the error is at most n * 2^-24 times that sum. Exception: with Options::collectives, the devices
/// may add arrays in their own memory. They add in the type of the elements, in an order of their own.
template <class X>
detail::WithRule<rules::Sum, std::remove_cvref_t<X>> psum(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmean(x)`: the mean over all rows of the batch, if x is the mean over the shard's rows. Trees, arrays and
/// the error are as for psum(). Shards without rows do not count, even if their mean is NaN, unless no shard has rows.
template <class X>
detail::WithRule<rules::Mean, std::remove_cvref_t<X>> pmean(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmax(x)`: the greatest value of the shards. Trees and arrays are as for psum(). Takes numbers with an order:
/// integers, floating-point numbers, bools and enums. NaN if one value is NaN. Under `-ffast-math` the result for NaN
/// is unspecified. Shards without rows do not count, unless no shard has rows.
template <class X>
detail::WithRule<rules::Max, std::remove_cvref_t<X>> pmax(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmin(x)`: the least value of the shards; see pmax().
template <class X>
detail::WithRule<rules::Min, std::remove_cvref_t<X>> pmin(X&& value) {
  return {std::forward<X>(value)};
}

/// `return reduce(x, [](auto a, auto b) { return a * b; })`: combines the shards' values by a function of two numbers,
/// in row order: f(f(x0, x1), x2) for three shards. Trees and arrays are as for psum(). A function of another type,
/// `[](const Best& a, const Best& b) { return a.score < b.score ? b : a; }`, combines whole values of that type, which
/// must own their data. `f` must have no state and return the type of its arguments. If `f` is associative, and each
/// shard reduces its rows by `f`, the result does not depend on the number of devices. Shards without rows do not
/// count, unless no shard has rows.
template <class X, class F>
auto reduce(X&& value, const F&) {
  static_assert(
      detail::Stateless<F>,
      "fanout: reduce takes a function without state, such as a lambda that captures nothing; with state, each shard "
      "could reduce with a different function");
  // Stands in for a function with state, so that the static_assert is the only error.
  using Rule = std::conditional_t<detail::Stateless<F>, rules::Fold<F>, rules::Sum>;
  return detail::WithRule<Rule, std::remove_cvref_t<X>>{std::forward<X>(value)};
}

}}  // namespace fanout::v0
