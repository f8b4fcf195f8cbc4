// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/base/error.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// Splits nodes with arrays in them: each shard receives a node of its pieces.

namespace detail {

template <class X>
concept SplitNode = !ArrayLeaf<X> && !splits_itself<X> && !StructLike<X> && HasArrayLeaf<X> && Rebuildable<X>;

/// The type of a piece in a container, which holds no references. What every shard receives whole is copied into it.
template <class X>
using held_piece_t = std::remove_cvref_t<piece_t<X>>;

struct AsPieces {
  template <class T>
  using type = piece_t<std::remove_cvref_t<T>>;
  template <class T>
  static constexpr bool is = std::is_constructible_v<held_piece_t<std::remove_cvref_t<T>>, type<T>>;
};

[[noreturn]] inline void refuse_valueless_input(const LeafPath& path) {
  throw StructureMismatch(explain({.what = "an argument is a variant without a value",
                                   .where = to_string(path),
                                   .expected = "one of its alternatives",
                                   .found = "none",
                                   .advice = "assign a value to it: an exception has left it without one"}));
}

/// Returns a node of type Result that holds the pieces of the children.
template <class Result, class X>
Result split_children(const X& x, const ScatterTarget& place, const LeafPath& path) {
  return rebuild<Result>(x, path, [&place]<class T>(const T& child, const LeafPath& at, auto) -> decltype(auto) {
    return piece_of<T>(child, place, at);
  });
}

/// A variant copies its alternatives without arrays, since it cannot hold a reference.
template <SplitNode X>
struct scatter_defaults<X> {
  using piece_type = rebuilt_t<X, AsPieces>;

  static piece_type piece(const X& x, const ScatterTarget& place, const LeafPath& path) {
    if constexpr (VariantNode<X>) {
      static_assert(all_children<AsPieces, X>,
                    "fanout: a variant with arrays is split by rows and rebuilt for each shard, so its alternatives "
                    "without arrays must be copyable; make them copyable, or pass broadcast(x)");
      if (x.valueless_by_exception()) refuse_valueless_input(path);
    }
    if constexpr (!VariantNode<X> || all_children<AsPieces, X>) {
      return split_children<piece_type>(x, place, path);
    }
    __builtin_unreachable();  // only after a refusal; prevents further errors
  }
};

}  // namespace detail
}}  // namespace fanout::v0
