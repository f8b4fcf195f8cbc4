// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/ranked_values.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// The results of micro-batches become one result. G is what those of a micro-batch were gathered to. X is what a shard
// returned: it has the rules.

template <class X, class G>
struct JoinBatches;

/// Joins the results of all micro-batches, in row order. Reductions have been combined before: the last micro-batch has
/// them. Throws as gather() does.
template <class X, class G>
G join_batches(ShardResults<G>& batches, const GatherTarget& place, const LeafPath& path) {
  return JoinBatches<X, G>::join(batches, place, path);
}

/// True for what has the rows of its micro-batch, or is a node around such values.
template <class X>
inline constexpr bool can_be_joined = ArrayLeaf<X> || Rebuildable<X>;

template <class X, class G>
struct JoinBatches {
  static G join(ShardResults<G>& batches, const GatherTarget& place, const LeafPath& path) {
    static_assert(can_be_joined<X>,
                  "fanout: the results of a pipeline's last stage cannot be joined over the micro-batches (this "
                  "diagnostic shows the type); return arrays with rows, psum(x), pmean(x) and the like, first(x), or "
                  "tuples, dicts, maps, structs and optionals of these");
    if constexpr (ArrayLeaf<X>) {
      return gather_traits<rules::Concatenate, G>::gather(batches, place, path);
    } else if constexpr (Rebuildable<X>) {
      if constexpr (requires { check_children(batches, std::size_t{}, place, path); }) {
        for (std::size_t i = 0; i < batches.size(); ++i) check_children(batches, i, place, path);
      }
      const auto join_child = [&]<class Child, class At>(const Child&, const LeafPath& at, const At& child) {
        using Returned = std::remove_cvref_t<decltype(child(std::declval<const X&>()))>;
        ShardResults<Child> values(batches, true, [&child](const G& g) -> const Child& { return child(g); });
        return join_batches<Returned>(values, place, at);
      };
      return rebuild<G, WithPlaces>(batches[0], path, join_child);
    } else {
      return batches.take_only();
    }
  }
};

template <class Rule, class G>
G chosen_of_batches(ShardResults<G>& batches) {
  return std::move(batches.take(ReducesNumbers<Rule> ? batches.size() - 1 : 0));
}

template <class Rule, class X, class G>
  requires(ReducesNumbers<Rule> || std::is_same_v<Rule, rules::First>)
struct JoinBatches<WithRule<Rule, X>, G> {
  static G join(ShardResults<G>& batches, const GatherTarget&, const LeafPath&) {
    return chosen_of_batches<Rule>(batches);
  }
};

template <class Rule, class T>
struct JoinBatches<ReducedMember<Rule, T>, ReducedMember<Rule, T>> {
  static ReducedMember<Rule, T> join(ShardResults<ReducedMember<Rule, T>>& batches, const GatherTarget&,
                                     const LeafPath&) {
    return chosen_of_batches<Rule>(batches);
  }
};

template <int Axis, class X, class G>
struct JoinBatches<WithRule<rules::ConcatenateOn<Axis>, X>, G> {
  static G join(ShardResults<G>& batches, const GatherTarget& place, const LeafPath& path) {
    return join_batches<X>(batches, place.on_axis(Axis), path);
  }
};

}}}  // namespace fanout::v0::detail
