// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace rules {

/// The rule that keeps the value of the first shard.
struct First {};

}  // namespace rules

/// `return first(x)`: returns the value of the first shard, which has the lowest rows. Numbers stay numbers. Views and
/// outputs become tensors. Shards without rows do not count, unless no shard has rows. The values of the other shards
/// are ignored, and may have other keys or lengths. If a leaf inside has another rule, all shards must return the same
/// structure around it, otherwise the call throws StructureMismatch.
template <class X>
detail::WithRule<rules::First, std::remove_cvref_t<X>> first(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

/// rules::First for a tree without other rules inside.
struct TakeFirstAlone {};
template <>
inline constexpr bool lets_choose<TakeFirstAlone> = false;

template <>
inline constexpr bool takes_rows<rules::First> = true;
template <>
inline constexpr bool takes_rows<TakeFirstAlone> = true;

template <class Rule>
concept TakesFirst = std::is_same_v<Rule, rules::First> || std::is_same_v<Rule, TakeFirstAlone>;

template <TakesFirst Rule, Scalar X>
struct gather_defaults<Rule, X> {
  using type = X;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    return pieces[place.first()];
  }
};

template <TakesFirst Rule, StringNode X>
struct gather_defaults<Rule, X> {
  using type = std::string;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    return type(std::string_view(pieces[place.first()]));
  }
};

/// Gathers an array as if there were only the first shard.
template <class X>
struct FirstArray {
  using type = gathered_under_t<rules::Concatenate, X>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    const std::size_t first = place.first();
    if constexpr (requires { pieces[first].space(); }) check_space(pieces[first].space(), place, path, first);
    ShardResults<X> only(1, pieces.owned());
    only.set(0, pieces[first]);
    return gather_traits<rules::Concatenate, X>::gather(only, place, path);
  }
};

template <TakesFirst Rule, ArrayLeaf X>
  requires Gatherable<rules::Concatenate, X>
struct gather_defaults<Rule, X> : FirstArray<X> {
};
template <TakesFirst Rule, class Allocator>
struct gather_defaults<Rule, std::vector<bool, Allocator>> : FirstArray<std::vector<bool, Allocator>> {};

/// Replaces the value of every shard by that of the first, so that the others cannot disagree.
template <class X>
  requires Gatherable<TakeFirstAlone, X>
struct gather_chosen<rules::First, X> {
  using type = gathered_under_t<rules::First, X>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    const X& first = pieces[place.first()];
    for (std::size_t i = 0; i < pieces.size(); ++i) pieces.set(i, first);
    return gather_traits<TakeFirstAlone, X>::gather(pieces, place, path);
  }
};

/// True for types that borrow memory: pointers, and types that are gathered to another type.
template <class X>
inline constexpr bool borrows = std::is_pointer_v<X> || StandsAlone<X>;
template <class X>
  requires Gatherable<rules::First, X>
inline constexpr bool borrows<X> = !std::is_same_v<gathered_under_t<rules::First, X>, X>;

struct WhatBorrows {
  template <class X>
  static constexpr bool found = borrows<X>;
};

/// A tree that owns all its data. A class whose fields cannot be found counts as one.
template <class X>
concept Outlasts = !has_inside<WhatBorrows, X>();

}  // namespace detail
}}  // namespace fanout::v0
