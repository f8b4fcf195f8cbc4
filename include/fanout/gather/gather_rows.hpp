// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include <fanout/array/vector_leaf.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/scatter/each.hpp>
#include <fanout/scatter/rows.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Gathers what `forward` returns as rows(v) or each(v).

namespace detail {

template <class X>
using element_in_t = std::remove_cv_t<typename std::remove_cvref_t<X>::value_type>;

/// `return rows(std::move(tensors))`: each element is a row of the result, whatever its type. Borrowed data is copied.
template <class X>
struct GatheringTrees {};
template <class X>
  requires Gatherable<TakeFirstAlone, element_in_t<X>>
struct GatheringTrees<X> {
  using T = element_in_t<X>;
  using type = std::vector<gathered_under_t<TakeFirstAlone, T>>;

  static type gather(ShardResults<X>& pieces, const GatherTarget& place, const LeafPath& path) {
    check_by_rows(place, path);
    const bool owned = pieces.owned() && !shows_elements<X>;
    type result;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (const T& element : pieces[i]) {
        ShardResults<T> alone(place.plan.size(), owned);  // as if every shard had returned it
        for (std::size_t shard = 0; shard < alone.size(); ++shard) alone.set(shard, element);
        result.push_back(gather_traits<TakeFirstAlone, T>::gather(alone, place, LeafPath(path, result.size())));
      }
    }
    return result;
  }
};

template <class X>
using GatheringRows =
    std::conditional_t<Row<element_in_t<X>>, ConcatenateElements<X, element_in_t<X>>, GatheringTrees<X>>;

template <class X>
  requires requires { typename GatheringRows<std::remove_cvref_t<X>>::type; }
struct gather_defaults<rules::Concatenate, Rows<X>> {
  using Vector = std::remove_cvref_t<X>;
  using type = typename GatheringRows<Vector>::type;

  static type gather(ShardResults<Rows<X>>& pieces, const GatherTarget& place, const LeafPath& path) {
    static_assert(!std::is_reference_v<X>,
                  "fanout: forward returns rows(v) of a variable, and v is destroyed before the rows are gathered; "
                  "return rows(std::move(v))");
    ShardResults<Vector> vectors(pieces, pieces.owned(),
                                 [](const Rows<X>& rows) -> const Vector& { return rows.value; });
    return GatheringRows<Vector>::gather(vectors, place.on_axis(0), path);  // rows on any axis, as arguments are
  }
};

/// `return each(std::move(numbers))`: a list. Each element is gathered with the elements at the same place of the other
/// shards.
template <class Rule, class X>
  requires(RefersToElements<std::remove_cvref_t<X>>&& Gatherable<Rule, element_in_t<X>>)
struct gather_defaults<Rule, Each<X>> {
  using List = std::remove_cvref_t<X>;
  using T = element_in_t<X>;
  using type = std::vector<gathered_under_t<Rule, T>>;

  static type gather(ShardResults<Each<X>>& pieces, const GatherTarget& place, const LeafPath& path) {
    static_assert(!std::is_reference_v<X>,
                  "fanout: forward returns each(v) of a variable, and v is destroyed before the list is gathered; "
                  "return each(std::move(v))");
    ShardResults<List> lists(pieces, pieces.owned(), [](const Each<X>& each) -> const List& { return each.value; });
    return gather_children<Rule, type>(lists, place, path);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
