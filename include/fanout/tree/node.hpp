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

}}  // namespace fanout::v0
