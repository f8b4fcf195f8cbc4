// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/scatter/shard_place.hpp>
#include <fanout/scatter/splitting.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

namespace fanout { inline namespace v0 {

// Containers with something in them that is split, rebuilt around the pieces.

namespace detail {

/// What stands for a piece in a container that holds no references: what goes to everyone is copied into it.
template <class X>
using held_piece_t = std::remove_cvref_t<piece_t<X>>;

template <class X>
concept SplitDict = DictNode<X> && HasArrayLeaf<X>;
template <class X>
concept SplitMap = MapNode<X> && HasArrayLeaf<X> && !SplitDict<X>;
template <class X>
concept SplitVector = VectorNode<X> && HasArrayLeaf<X> && !SplitMap<X>;
template <class X>
concept SplitSpan = SpanNode<X> && HasArrayLeaf<X> && !SplitVector<X> && !SplitMap<X>;
template <class X>
concept SplitOptional = OptionalNode<X> && HasArrayLeaf<X> && !SplitVector<X> && !SplitSpan<X> && !SplitMap<X>;
template <class X>
concept SplitTuple = TupleNode<X> && HasArrayLeaf<X>;

template <class... K, class... T>
  requires SplitDict<Dict<Entry<K, T>...>>
struct Splitting<Dict<Entry<K, T>...>> {
  using X = Dict<Entry<K, T>...>;
  using piece_type = Dict<Entry<K, piece_t<T>>...>;
  static piece_type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    return {std::tuple<piece_t<T>...>{Splitting<T>::piece(x[K{}], place, LeafPath(path, K::name()))...}};
  }
};

template <SplitTuple X>
struct Splitting<X> {
  template <std::size_t I>
  using element_t = std::remove_cvref_t<std::tuple_element_t<I, X>>;
  template <class Indices>
  struct pieces_of;
  template <std::size_t... I>
  struct pieces_of<std::index_sequence<I...>> {
    using type = rebind_tuple_t<X, piece_t<element_t<I>>...>;
    static type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
      return type{Splitting<element_t<I>>::piece(std::get<I>(x), place, LeafPath(path, I))...};
    }
  };
  using pieces = pieces_of<std::make_index_sequence<std::tuple_size_v<X>>>;
  using piece_type = typename pieces::type;

  static piece_type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    return pieces::piece(x, place, path);
  }
};

template <SplitMap X>
struct Splitting<X> {
  using T = typename X::mapped_type;
  using piece_type = rebind_map_t<X, held_piece_t<T>>;
  static piece_type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    piece_type pieces;
    std::size_t position = 0;
    for (const auto& [key, value] : x) {
      pieces.emplace(key, Splitting<T>::piece(value, place, LeafPath::at_key(path, key_text(key, position++))));
    }
    return pieces;
  }
};

/// Rows of trees, into rows of pieces.
template <class X, class Result>
struct SplittingRow {
  using T = typename X::value_type;
  using piece_type = Result;
  static piece_type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    piece_type pieces;
    for (std::size_t i = 0; i < x.size(); ++i) {
      pieces.push_back(Splitting<T>::piece(x[i], place, LeafPath(path, i)));
    }
    return pieces;
  }
};

template <SplitVector X>
struct Splitting<X> : SplittingRow<X, rebind_element_t<X, held_piece_t<typename X::value_type>>> {};
template <SplitSpan X>
struct Splitting<X> : SplittingRow<X, std::vector<held_piece_t<typename X::value_type>>> {};

template <SplitOptional X>
struct Splitting<X> {
  using T = typename X::value_type;
  using piece_type = rebind_element_t<X, held_piece_t<T>>;
  static piece_type piece(const X& x, const ShardPlace& place, const LeafPath& path) {
    if (!x.has_value()) return {};
    return piece_type(Splitting<T>::piece(*x, place, path));
  }
};

}  // namespace detail
}}  // namespace fanout::v0
