// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>

namespace fanout { inline namespace v0 {

// What stands at a place of a tree. Containers are recognised by their shape, so that their headers need not be
// included. A type is the first of these that it fits: array leaf, scalar, string, dict, map, vector, span, optional,
// tuple, variant, struct.

namespace detail {

template <class X>
inline constexpr bool is_dict = false;
template <class... Entries>
inline constexpr bool is_dict<Dict<Entries...>> = true;

}  // namespace detail

/// Text: what converts to a string_view and is a range of letters, so that a pointer to letters is none.
template <class X>
concept StringNode = !ArrayLeaf<X> && std::convertible_to<const X&, std::string_view> && requires {
  typename X::value_type;
};

template <class X>
concept DictNode = detail::is_dict<X>;

/// A map from keys to trees: `std::map`, `std::unordered_map` and what looks like them. Each key has one tree, which
/// `at()` tells from a multimap.
template <class X>
concept MapNode = !ArrayLeaf<X> && requires(const X& map, const typename X::key_type& key) {
  typename X::mapped_type;
  map.find(key) == map.end();
  map.at(key);
  { map.size() } -> std::convertible_to<std::size_t>;
};

/// A vector of trees: something that grows at its end and is indexed.
template <class X>
concept VectorNode = !ArrayLeaf<X> && !StringNode<X> && requires(X & vector, typename X::value_type&& value) {
  vector.push_back(static_cast<typename X::value_type&&>(value));
  vector[std::size_t{0}];
  { vector.size() } -> std::convertible_to<std::size_t>;
};

/// A row of trees that belong to someone else.
template <class X>
concept SpanNode = !ArrayLeaf<X> && requires(const X& span) {
  { span.data() } -> std::same_as<typename X::element_type*>;
  {span.subspan(std::size_t{0})};
  { span.size() } -> std::convertible_to<std::size_t>;
};

/// One tree or none.
template <class X>
concept OptionalNode = !ArrayLeaf<X> && requires(const X& optional) {
  typename X::value_type;
  { optional.has_value() } -> std::convertible_to<bool>;
  *optional;
};

/// A fixed number of trees, which `std::get` reaches: tuple, pair, array.
template <class X>
concept TupleNode = !ArrayLeaf<X> && requires {
  std::tuple_size<X>::value;
  requires(std::tuple_size<X>::value == 0 || requires(const X& x) { std::get<0>(x); });
};

/// One of several trees.
template <class X>
concept VariantNode = !ArrayLeaf<X> && detail::HasAlternatives<X>;

/// True for a type that says how the tree inside it is to be taken, so that a vector of it is a vector of trees.
template <class X>
inline constexpr bool wraps_tree = false;

/// True for those of them that say how an argument is split: broadcast(x), split<1>(x). A tree with one in it is
/// rebuilt as one with arrays is.
template <class X>
inline constexpr bool splits_itself = false;

namespace detail {

/// A class that is no other node, whether or not its fields can be found.
template <class X>
concept StructLike =
    std::is_class_v<X> && !wraps_tree<X> && !ArrayLeaf<X> && !Scalar<X> && !StringNode<X> && !DictNode<X> &&
    !MapNode<X> && !VectorNode<X> && !SpanNode<X> && !OptionalNode<X> && !TupleNode<X> && !VariantNode<X>;

}  // namespace detail

/// A struct of trees: a plain one, or one that lists its fields.
template <class X>
concept StructNode = detail::StructLike<X> && HasFields<X>;

namespace detail {

/// Something that is split, gathered or moved by itself: what says so, and arrays other than vectors and C arrays.
template <class X>
concept StandsAlone = splits_itself<X> || wraps_tree<X> || shows_elements<X> ||
    (!owns_elements<X> && !std::is_array_v<X> && ArrayLeaf<X>);

// What a tree is searched for: `found<X>` is true for a node with it.

/// Something that is split.
struct WhatIsSplit {
  template <class X>
  static constexpr bool found = ArrayLeaf<X> || splits_itself<X>;
};
/// Something of which a vector is a list, and not rows.
struct WhatStandsAlone {
  template <class X>
  static constexpr bool found = StandsAlone<X>;
};

// `Around` are the structs that a type was found in: what stands in itself, by way of a vector or a map, is not asked
// again.
template <class Sought, class X, class... Around>
constexpr bool has_inside();

/// Initialises a member that has what is sought in it.
template <class Sought, class... Around>
struct AnyTreeWith {
  template <class T>
    requires(has_inside<Sought, T, Around...>())
  operator T() const {  // NOLINT(google-explicit-constructor): stands in for what is converted
    __builtin_unreachable();
  }
};

template <class Sought, class X, class... Around, std::size_t... I>
constexpr bool any_element_has_inside(std::index_sequence<I...>) {
  return (has_inside<Sought, std::remove_cvref_t<std::tuple_element_t<I, X>>, Around...>() || ...);
}

template <class Sought, class X, class... Around, std::size_t... I>
constexpr bool any_alternative_has_inside(std::index_sequence<I...>) {
  return (has_inside<Sought, std::remove_cv_t<typename AlternativesOf<X>::template type<I>>, Around...>() || ...);
}

template <class Sought, class... Around, class... K, class... T>
constexpr bool any_entry_has_inside(const Dict<Entry<K, T>...>*) {
  return (has_inside<Sought, T, Around...>() || ...);
}

template <class Sought, class X, class... Around, std::size_t... I>
constexpr bool any_field_has_inside(std::index_sequence<I...>) {
  return (has_inside<Sought, std::remove_cvref_t<typename FieldsOf<X>::template type<I>>, Around...>() || ...);
}

template <class Sought, class X, class... Around>
constexpr bool has_inside() {
  if constexpr (Sought::template found<X>) {
    return true;
  } else if constexpr (std::is_array_v<X>) {  // first: whether it is an array leaf depends on what is asked here
    return has_inside<Sought, std::remove_extent_t<X>, Around...>();
  } else if constexpr (owns_elements<X>) {
    return has_inside<Sought, typename X::value_type, Around...>();
  } else if constexpr (DictNode<X>) {
    return any_entry_has_inside<Sought, Around...>(static_cast<const X*>(nullptr));
  } else if constexpr (MapNode<X>) {
    return has_inside<Sought, typename X::mapped_type, Around...>();
  } else if constexpr (VectorNode<X> || SpanNode<X> || OptionalNode<X>) {
    return has_inside<Sought, typename X::value_type, Around...>();
  } else if constexpr (TupleNode<X>) {
    return any_element_has_inside<Sought, X, Around...>(std::make_index_sequence<std::tuple_size_v<X>>{});
  } else if constexpr (VariantNode<X>) {
    return any_alternative_has_inside<Sought, X, Around...>(std::make_index_sequence<AlternativesOf<X>::size>{});
  } else if constexpr (!StructLike<X> || (std::is_same_v<X, Around> || ...)) {
    return false;
  } else if constexpr (ListsFields<X>) {
    return any_field_has_inside<Sought, X, X, Around...>(std::make_index_sequence<FieldsOf<X>::size>{});
  } else if constexpr (std::is_aggregate_v<X>) {
    return some_member_takes<X,
                             AnyTreeWith<Sought, X, Around...>>();  // which no struct refuses, as taking it apart might
  } else {
    return false;
  }
}

}  // namespace detail

/// A tree with at least one array in it, or something that splits itself, by its type: an empty vector of tensors
/// counts. Of an aggregate that takes more than 33 initialisers, as those with long C arrays do, only so many are
/// looked at.
template <class X>
concept HasArrayLeaf = detail::has_inside<detail::WhatIsSplit, X>();

namespace detail {

/// A tree that has a tensor, a view, a span or an output in it, or something that says how it is split or gathered, as
/// broadcast() and psum() do. A vector of such trees is a list of them. The elements of any other vector are rows.
template <class X>
concept HoldsTree = detail::has_inside<detail::WhatStandsAlone, X>();

}  // namespace detail
}}  // namespace fanout::v0
