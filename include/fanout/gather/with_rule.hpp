// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/gather_traits.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A tree with a rule of its own, which holds instead of the rule of the tree around it. psum(), first(), concat() and
/// the like return it.
template <class Rule, class X>
struct WithRule {
  X value;
};

template <class Rule, class X>
inline constexpr bool wraps_tree<WithRule<Rule, X>> = true;

template <class Outer, class Rule, class X>
  requires(lets_choose<Outer>&& GatherableChosen<Rule, X>)
struct gather_defaults<Outer, WithRule<Rule, X>> {
  using type = typename gather_chosen<Rule, X>::type;

  static type gather(ShardResults<WithRule<Rule, X>>& pieces, const GatherTarget& place, const LeafPath& path) {
    ShardResults<X> values(pieces, pieces.owned(), [](const auto& x) -> const X& { return x.value; });
    return gather_chosen<Rule, X>::gather(values, place, path);
  }
};

}}}  // namespace fanout::v0::detail
