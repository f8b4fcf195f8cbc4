// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/tree/child_types.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

// What a tree contains, as far as its type says.

namespace detail {

/// A tree that is split, gathered or moved on its own: one that says how, and any array but a vector or a C array.
template <class X>
concept StandsAlone = splits_itself<X> || wraps_tree<X> || shows_elements<X> ||
    (!owns_elements<X> && !std::is_array_v<X> && ArrayLeaf<X>);

// What a tree is searched for: `found<X>` is true for a node with it.

/// A tree that is split.
struct WhatIsSplit {
  template <class X>
  static constexpr bool found = ArrayLeaf<X> || splits_itself<X>;
};
/// A tree whose vectors are lists of trees, not rows.
struct WhatStandsAlone {
  template <class X>
  static constexpr bool found = StandsAlone<X>;
};

/// True for a search that leaves out the elements of vectors.
template <class Sought>
inline constexpr bool skips_vectors = false;

// `Around` are the structs that contain this type. A struct inside itself, by way of a vector or a map, is not searched
// again.
template <class Sought, class X, class... Around>
constexpr bool has_inside();

/// Initialises a member that contains what is sought.
template <class Sought, class... Around>
struct AnyTreeWith {
  template <class T>
    requires(has_inside<Sought, T, Around...>())
  operator T() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

template <class Sought, class... Around, class... Child, class... Step>
constexpr bool any_has_inside(ChildTypes<ChildType<Child, Step>...>) {
  return (has_inside<Sought, std::remove_cvref_t<Child>, Around...>() || ...);
}

template <class Sought, class X, class... Around>
constexpr bool has_inside() {
  if constexpr (Sought::template found<X>) {
    return true;
  } else if constexpr (std::is_array_v<X>) {  // first, since it decides if X is an array leaf
    return has_inside<Sought, std::remove_extent_t<X>, Around...>();
  } else if constexpr (owns_elements<X> && skips_vectors<Sought>) {
    return false;
  } else if constexpr (owns_elements<X>) {
    return has_inside<Sought, typename X::value_type, Around...>();
  } else if constexpr (!StructLike<X>) {
    return any_has_inside<Sought, Around...>(child_types_t<X>());
  } else if constexpr ((std::is_same_v<X, Around> || ...)) {
    return false;
  } else if constexpr (ListsFields<X>) {
    return any_has_inside<Sought, X, Around...>(child_types_t<X>());
  } else if constexpr (std::is_aggregate_v<X>) {
    return some_member_takes<X,
                             AnyTreeWith<Sought, X, Around...>>();  // which no struct refuses, as taking it apart might
  } else {
    return false;
  }
}

}  // namespace detail

/// A tree with at least one array in it, or with a part that splits itself, as far as its type says. So an empty vector
/// of tensors counts. Of an aggregate that takes more than 33 initialisers, as one with a long C array, only the first
/// 33 are searched.
template <class X>
concept HasArrayLeaf = detail::has_inside<detail::WhatIsSplit, X>();

namespace detail {

/// A tree that has a tensor, a view, a span or an output in it, or something that says how it is split or gathered, as
/// broadcast() and psum() do. A vector of such trees is a list of them. The elements of any other vector are rows.
template <class X>
concept HoldsTree = detail::has_inside<detail::WhatStandsAlone, X>();

/// A tree of type X.
template <class X, bool in_vectors>
struct WhatIs {
  template <class Y>
  static constexpr bool found = std::is_same_v<X, Y>;
};
template <class X>
inline constexpr bool skips_vectors<WhatIs<X, false>> = true;

/// A struct that contains itself in a map or a vector. If `takes_rows`, a vector of rows does not count, since nothing
/// looks into it. A question that is put to each child in turn never ends at such a struct.
template <class X, bool takes_rows>
concept InsideItself = StructNode<X> && any_has_inside<WhatIs<X, !takes_rows || HoldsTree<X>>, X>(child_types_t<X>());

}  // namespace detail
}}  // namespace fanout::v0
