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

/// A function without state, so that all shards have the same one and none need be kept.
template <class F>
concept Stateless = std::is_empty_v<F> && std::default_initializable<F>;

/// What F makes of two numbers of type T becomes a T without a surprise: it is one, or both are whole numbers, as `+` makes
/// an int of small ones, or T is a class that is made from it, as a half is from a float.
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

// A rule that combines what the shards return at one place, number by number, has
//
// 1. `name`: what the user called it by;
// 2. `takes<T>`: whether it combines numbers of type T;
// 3. `counts_empty`: whether a shard without rows counts also among others with rows;
// 4. `accumulated<T>`: in what the result may be kept until all shards are in it, and rounded to a T then;
// 5. `first<T, A>(x, share)` and `next<T, A>(so_far, x, share)`: what is made of the first number, and of that and the next
//    ones, in row order. They give an A: a T or an accumulated<T>. `share` is the shard's share of all rows.

/// Combines two at a time, in row order: `F()(F()(x0, x1), x2)` of three shards.
template <class F>
struct FoldOverShards {
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

/// Adds up what the shards return. Floating and complex numbers are added as doubles and rounded once at the end, but
/// for floats of few shards; a long double, and a class of numbers that is not narrower than a float, is added as what it
/// is. Whole numbers wrap.
struct SumOverShards : FoldOverShards<detail::Add> {
  static constexpr const char* name = "psum";
  /// Numbers of any kind; the sum has their type.
  template <class T>
  static constexpr bool takes = FoldOverShards<detail::Add>::takes<T> && !std::is_enum_v<T> && !std::same_as<T, bool>;
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

/// The greatest of what the shards return; of equal ones, that of the lowest rows. A NaN is greater than all.
struct MaxOverShards : FoldOverShards<detail::Greater> {
  static constexpr const char* name = "pmax";
};

/// The least of what the shards return; of equal ones, that of the lowest rows. A NaN is less than all.
struct MinOverShards : FoldOverShards<detail::Less> {
  static constexpr const char* name = "pmin";
};

/// The mean over all rows, from means over each shard's rows: each shard counts by its share of the rows, and equally
/// if there are no rows. A mean of means that ignored that would be wrong for shards of different sizes. Added up as
/// sums are.
struct MeanOverShards {
  static constexpr const char* name = "pmean";
  /// Floating and complex numbers only: a mean of whole numbers is none.
  template <class T>
  static constexpr bool takes = SumOverShards::takes<T> && !std::is_integral_v<T>;
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

/// `return psum(x)`: the sum of what the shards return at this place, element by element for arrays, leaf by leaf for
/// trees; arrays must have the same extents on every shard. Added in row order, so the result is the same in every run.
/// Whole numbers wrap if they do not fit. Floating ones are added as doubles and rounded once, so that the error is at
/// most half a unit in the last place of the result and n * 2^-53 times the sum of the absolute values, with n shards.
/// Only floats of up to 16 shards are added as floats: there it is at most n * 2^-24 times that sum.
template <class X>
WithRule<SumOverShards, std::remove_cvref_t<X>> psum(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmean(x)`: the mean over all rows of the batch, where x is the mean over this shard's rows; see psum() for
/// trees and arrays, and for how exact it is. A shard without rows among others with rows does not count, even if its
/// own mean is NaN.
template <class X>
WithRule<MeanOverShards, std::remove_cvref_t<X>> pmean(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmax(x)`: the greatest of what the shards return; see psum() for trees and arrays. For numbers with an order:
/// whole and floating ones, bools, enums. NaN if one is NaN, except under `-ffast-math`, where it is not said what comes of
/// a NaN. A shard without rows among others with rows does not count.
template <class X>
WithRule<MaxOverShards, std::remove_cvref_t<X>> pmax(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmin(x)`: the least of what the shards return; see pmax().
template <class X>
WithRule<MinOverShards, std::remove_cvref_t<X>> pmin(X&& value) {
  return {std::forward<X>(value)};
}

/// `return reduce(x, [](auto a, auto b) { return a * b; })`: combines what the shards return by a function of two numbers,
/// f(f(x0, x1), x2) of three shards, in row order; see psum() for trees and arrays. A function that names another type,
/// `[](const Best& a, const Best& b) { return a.score < b.score ? b : a; }`, combines whole values of that type, which own
/// what they show. One shard's value is what it returned. With another number of devices the shards are others, so the
/// result is the same for associative functions only. A shard without rows among others with rows does not count. `f` has
/// no state and returns the type of its arguments.
template <class X, class F>
auto reduce(X&& value, const F&) {
  static_assert(
      detail::Stateless<F>,
      "fanout: reduce takes a function without state, such as a lambda that captures nothing: what each shard "
      "captured for itself would not be one function for all");
  // A function with state is refused by that sentence alone.
  using Rule = std::conditional_t<detail::Stateless<F>, FoldOverShards<F>, SumOverShards>;
  return WithRule<Rule, std::remove_cvref_t<X>>{std::forward<X>(value)};
}

}}  // namespace fanout::v0
