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

// The kinds of nodes in a tree. Containers are recognised by their members, so that their headers need not be included.
// A type is the first of these kinds that it fits: array leaf, scalar, string, dict, map, vector, span, optional,
// tuple, variant, struct.

namespace detail {

template <class X>
inline constexpr bool is_dict = false;
template <class... Entries>
inline constexpr bool is_dict<Dict<Entries...>> = true;

}  // namespace detail

/// Text: a range of letters that converts to a string_view. So a pointer to letters is no text.
template <class X>
concept StringNode = !ArrayLeaf<X> && std::convertible_to<const X&, std::string_view> && requires {
  typename X::value_type;
};

/// A Dict: values under keys that are part of its type.
template <class X>
concept DictNode = detail::is_dict<X>;

/// A map from keys to trees: `std::map`, `std::unordered_map` and the like. Each key has one tree: a multimap has no
/// `at()`.
template <class X>
concept MapNode = !ArrayLeaf<X> && requires(const X& map, const typename X::key_type& key) {
  typename X::mapped_type;
  map.find(key) == map.end();
  map.at(key);
  { map.size() } -> std::convertible_to<std::size_t>;
};

/// A vector of trees: it grows at its end and has an index.
template <class X>
concept VectorNode = !ArrayLeaf<X> && !StringNode<X> && requires(X & vector, typename X::value_type&& value) {
  vector.push_back(static_cast<typename X::value_type&&>(value));
  vector[std::size_t{0}];
  { vector.size() } -> std::convertible_to<std::size_t>;
};

/// A span of trees, which it does not own.
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

/// A fixed number of trees, accessed by `std::get`: tuple, pair, array.
template <class X>
concept TupleNode = !ArrayLeaf<X> && requires {
  std::tuple_size<X>::value;
  requires(std::tuple_size<X>::value == 0 || requires(const X& x) { std::get<0>(x); });
};

/// One of several trees.
template <class X>
concept VariantNode = !ArrayLeaf<X> && detail::HasAlternatives<X>;

/// True for a type that says how an argument is split: broadcast(x), split<1>(x). A tree with one in it is rebuilt like
/// a tree with arrays.
template <class X>
inline constexpr bool splits_itself = false;

namespace detail {

/// True for a type that says how the tree inside it is treated. So a vector of it is a vector of trees.
template <class X>
inline constexpr bool wraps_tree = false;

/// A class that is no other kind of node, whether or not its fields can be found.
template <class X>
concept StructLike =
    std::is_class_v<X> && !wraps_tree<X> && !ArrayLeaf<X> && !Scalar<X> && !StringNode<X> && !DictNode<X> &&
    !MapNode<X> && !VectorNode<X> && !SpanNode<X> && !OptionalNode<X> && !TupleNode<X> && !VariantNode<X>;

}  // namespace detail

/// A struct of trees: a plain one, or one that lists its fields.
template <class X>
concept StructNode = detail::StructLike<X> && HasFields<X>;

}}  // namespace fanout::v0
