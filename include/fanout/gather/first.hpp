// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

/// Keeps what the first shard returned, and drops the rest.
struct TakeFirst {};

/// `return first(x)`: the value of the first shard, the one with the lowest rows, as it is: numbers stay numbers, views
/// and outputs become tensors that own what they show. Shards without rows are passed over, unless none has rows. What
/// the other shards return is dropped, and need not be like it: maps may have other keys, vectors other lengths. Only
/// where something in the tree chooses another rule for itself, which looks at all shards, must these agree on what
/// stands around it.
template <class X>
WithRule<TakeFirst, std::remove_cvref_t<X>> first(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

/// Under TakeFirst, in a tree in which nothing chooses another rule.
struct TakeFirstAlone {};
template <>
inline constexpr bool lets_choose<TakeFirstAlone> = false;

template <>
inline constexpr bool takes_rows<TakeFirst> = true;
template <>
inline constexpr bool takes_rows<TakeFirstAlone> = true;

template <class Rule>
concept TakesFirst = std::is_same_v<Rule, TakeFirst> || std::is_same_v<Rule, TakeFirstAlone>;

template <TakesFirst Rule, Scalar X>
struct Gathering<Rule, X> {
  using type = X;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    return pieces[place.first()];
  }
};

template <TakesFirst Rule, StringNode X>
struct Gathering<Rule, X> {
  using type = std::string;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath&) {
    return type(std::string_view(pieces[place.first()]));
  }
};

/// Arrays, as if there were only the first.
template <class X>
struct FirstArray {
  using type = gathered_under_t<Concatenate, X>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    const std::size_t first = place.first();
    if constexpr (requires { pieces[first].space(); }) check_space(pieces[first].space(), place, path, first);
    ShardResults<X> only(1, pieces.owned());
    only.set(0, pieces[first]);
    return Gathering<Concatenate, X>::gather(only, place, path);
  }
};

template <TakesFirst Rule, ArrayLeaf X>
  requires Gatherable<Concatenate, X>
struct Gathering<Rule, X> : FirstArray<X> {
};
template <TakesFirst Rule, class Allocator>
struct Gathering<Rule, std::vector<bool, Allocator>> : FirstArray<std::vector<bool, Allocator>> {};

/// What the other shards returned is not looked at: each shard stands for the first one.
template <class X>
  requires Gatherable<TakeFirstAlone, X>
struct GatheringChosen<TakeFirst, X> {
  using type = gathered_under_t<TakeFirst, X>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    const X& first = pieces[place.first()];
    for (std::size_t i = 0; i < pieces.size(); ++i) pieces.set(i, first);
    return Gathering<TakeFirstAlone, X>::gather(pieces, place, path);
  }
};

/// True for what shows something that it does not own: what is gathered to another type, and pointers.
template <class X>
inline constexpr bool borrows = std::is_pointer_v<X> || StandsAlone<X>;
template <class X>
  requires Gatherable<TakeFirst, X>
inline constexpr bool borrows<X> = !std::is_same_v<gathered_under_t<TakeFirst, X>, X>;

struct WhatBorrows {
  template <class X>
  static constexpr bool found = borrows<X>;
};

/// A tree that stays what it is when the shards are gone. A class that cannot be looked into counts.
template <class X>
concept Outlasts = !has_inside<WhatBorrows, X>();

}  // namespace detail
}}  // namespace fanout::v0
