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

/// A function without state: it is the same on all shards and need not be stored.
template <class F>
concept Stateless = std::is_empty_v<F> && std::default_initializable<F>;

/// The result of F for two numbers of type T can be stored as a T: it is a T, or both are integers (`+` makes an int of
/// small ones), or T is a class that is made from it, as a half is from a float.
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

/// The rule that folds the shards' values in row order: `F()(F()(x0, x1), x2)` for three shards.
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

/// The rule that adds the shards' values. Floating and complex numbers are added as doubles and rounded once at the
/// end, except floats of few shards. A long double, and a class of numbers that is not narrower than a float, is added
/// as its own type. Integers wrap around.
struct SumOverShards : FoldOverShards<detail::Add> {
  static constexpr const char* name = "psum";
  /// Numbers of any type. The sum has the same type.
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

/// The rule that takes the greatest value; of equal ones, that of the lowest rows. NaN counts as the greatest.
struct MaxOverShards : FoldOverShards<detail::Greater> {
  static constexpr const char* name = "pmax";
};

/// The rule that takes the least value; of equal ones, that of the lowest rows. NaN counts as the least.
struct MinOverShards : FoldOverShards<detail::Less> {
  static constexpr const char* name = "pmin";
};

/// The rule that computes the mean over all rows from the means of the shards. Each shard is weighed by its rows, and
/// all equally if there are no rows. Added as sums are.
struct MeanOverShards {
  static constexpr const char* name = "pmean";
  /// Only floating and complex numbers: the mean of integers is none.
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

/// `return psum(x)`: the sum over the shards, element by element for arrays, leaf by leaf for trees. Throws
/// ShapeMismatch if arrays have different extents. Adds in row order, so the result is the same in every run. Integers
/// wrap around. Floating-point numbers are added as doubles and rounded once. With n shards the error is at most half a
/// unit in the last place of the result, plus n * 2^-53 times the sum of the absolute values. Floats of up to 16 shards
/// are added as floats: the error is at most n * 2^-24 times that sum.
template <class X>
WithRule<SumOverShards, std::remove_cvref_t<X>> psum(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmean(x)`: the mean over all rows of the batch, if x is the mean over the shard's rows. Trees, arrays and
/// the error are as for psum(). Shards without rows do not count, even if their mean is NaN, unless no shard has rows.
template <class X>
WithRule<MeanOverShards, std::remove_cvref_t<X>> pmean(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmax(x)`: the greatest value of the shards. Trees and arrays are as for psum(). For numbers with an order:
/// integers, floating-point numbers, bools and enums. NaN if one value is NaN; under `-ffast-math` the result for NaN
/// is unspecified. Shards without rows do not count, unless no shard has rows.
template <class X>
WithRule<MaxOverShards, std::remove_cvref_t<X>> pmax(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmin(x)`: the least value of the shards; see pmax().
template <class X>
WithRule<MinOverShards, std::remove_cvref_t<X>> pmin(X&& value) {
  return {std::forward<X>(value)};
}

/// `return reduce(x, [](auto a, auto b) { return a * b; })`: combines the shards' values by a function of two numbers,
/// in row order: f(f(x0, x1), x2) for three shards. Trees and arrays are as for psum(). A function of another type,
/// `[](const Best& a, const Best& b) { return a.score < b.score ? b : a; }`, combines whole values of that type, which
/// must own their data. `f` has no state and returns the type of its arguments. The result does not depend on the
/// number of devices if `f` is associative. Shards without rows do not count, unless no shard has rows.
template <class X, class F>
auto reduce(X&& value, const F&) {
  static_assert(
      detail::Stateless<F>,
      "fanout: reduce takes a function without state, such as a lambda that captures nothing; with state, each shard "
      "could reduce with a different function");
  // A function with state is refused by that sentence alone.
  using Rule = std::conditional_t<detail::Stateless<F>, FoldOverShards<F>, SumOverShards>;
  return WithRule<Rule, std::remove_cvref_t<X>>{std::forward<X>(value)};
}

}}  // namespace fanout::v0
