// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout::inline v0 {

namespace detail {

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

}  // namespace detail

/// Adds up what the shards return, in row order.
struct SumOverShards {
  static constexpr const char* name = "psum";
  /// Numbers of any kind; the sum has their type and wraps or rounds as it does.
  template <class T>
  static constexpr bool takes = Scalar<T> && !std::is_enum_v<T> && !std::same_as<T, bool> && requires(T x) {
    x + x;
  };

  template <class T>
  static T first(const T& x, double) {
    return x;
  }
  template <class T>
  static T next(const T& so_far, const T& x, double) {
    return static_cast<T>(so_far + x);
  }
};

/// The mean over all rows, from means over each shard's rows: each shard counts by its share of the rows, and equally
/// if there are no rows. A mean of means that ignored that would be wrong for shards of different sizes. A shard
/// without rows among others with rows does not count, even if its own mean is NaN.
struct MeanOverShards {
  static constexpr const char* name = "pmean";
  /// Floating and complex numbers only: a mean of whole numbers is none.
  template <class T>
  static constexpr bool takes = Scalar<T> && !std::is_enum_v<T> && !std::is_integral_v<T> && requires(T x) {
    x + x;
  };

  template <class T>
  static T first(const T& x, double share) {
    return share == 0 ? T() : static_cast<T>(x * static_cast<typename detail::real_of<T>::type>(share));
  }
  template <class T>
  static T next(const T& so_far, const T& x, double share) {
    return share == 0 ? so_far : static_cast<T>(so_far + first(x, share));
  }
};

/// A tree whose leaves are combined over the shards, instead of put one after the other.
template <class Rule, class X>
struct Reduced {
  X value;
};

template <class Rule, class X>
inline constexpr bool wraps_tree<Reduced<Rule, X>> = true;

/// `return psum(x)`: the sum of what the shards return at this place, element by element for arrays, leaf by leaf for
/// trees; arrays must have the same extents on every shard. Added in row order, so the result is the same in every run.
template <class X>
Reduced<SumOverShards, std::remove_cvref_t<X>> psum(X&& value) {
  return {std::forward<X>(value)};
}

/// `return pmean(x)`: the mean over all rows of the batch, where x is the mean over this shard's rows; see psum() for
/// trees and arrays.
template <class X>
Reduced<MeanOverShards, std::remove_cvref_t<X>> pmean(X&& value) {
  return {std::forward<X>(value)};
}

}  // namespace fanout::inline v0
