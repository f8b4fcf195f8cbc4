// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <utility>

#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// A member of a struct with a rule of its own: Mean<T>, Sum<T>, Max<T>, Min<T>, First<T>. It converts from a T and to
/// a T. In a struct that `forward` returns, it is combined over the shards. The gathered struct holds the result.
///
/// As a field of a model, it is combined over the replicas after each call of a `forward` that is not const. Then all
/// replicas and the original have the result. A Mean is weighted by rows. A Sum adds the changes of all replicas. The
/// others apply their rules to the replicas' values.
template <class Rule, class T>
struct ReducedMember {
  T value{};

  ReducedMember() = default;
  constexpr ReducedMember(T x) : value(std::move(x)) {}           // NOLINT(google-explicit-constructor): is a T
  constexpr operator const T&() const noexcept { return value; }  // NOLINT(google-explicit-constructor): is a T
};

template <class Rule, class T>
inline constexpr bool wraps_tree<ReducedMember<Rule, T>> = true;

}  // namespace detail

/// A member or field that is combined by the rule of psum().
template <class T>
using Sum = detail::ReducedMember<rules::Sum, T>;

/// A member or field that is combined by the rule of pmean().
template <class T>
using Mean = detail::ReducedMember<rules::Mean, T>;

/// A member or field that is combined by the rule of pmax().
template <class T>
using Max = detail::ReducedMember<rules::Max, T>;

/// A member or field that is combined by the rule of pmin().
template <class T>
using Min = detail::ReducedMember<rules::Min, T>;

/// A member or field that is combined by the rule of first().
template <class T>
using First = detail::ReducedMember<rules::First, T>;

namespace detail {

template <class X>
inline constexpr bool is_reduced = false;
template <class Rule, class T>
inline constexpr bool is_reduced<ReducedMember<Rule, T>> = true;

template <class Outer, class Rule, class T>
  requires(lets_choose<Outer>&& Gatherable<Rule, T>&& std::same_as<gathered_under_t<Rule, T>, T>)
struct gather_defaults<Outer, ReducedMember<Rule, T>> {
  using type = ReducedMember<Rule, T>;

  static type gather(ShardResults<type>& pieces, const GatherTarget& place, const LeafPath& path) {
    ShardResults<T> values(pieces, pieces.owned(), [](const type& x) -> const T& { return x.value; });
    return gather_chosen<Rule, T>::gather(values, place, path);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
