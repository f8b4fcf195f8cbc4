// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/key.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/rebind.hpp>

#include "support/random_split.hpp"

namespace fanout_test {

/// A struct of two trees.
template <class A, class B>
struct Both {
  A first_tree;
  B second_tree;
};

template <class A, class B>
using DictOf = fanout::Dict<fanout::detail::Entry<fanout::Key<'a'>, A>, fanout::detail::Entry<fanout::Key<'b'>, B>>;

constexpr std::uint32_t mixed(std::uint32_t seed, std::uint32_t salt) {
  std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15ULL + salt * 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 31;
  return static_cast<std::uint32_t>((x * 0x94D049BB133111EBULL) >> 32);
}

/// Some type of tree, whose leaves own their arrays, that is as deep as this. If `Wide`, they all have two axes or
/// more.
template <std::uint32_t Seed, std::uint32_t Depth, bool Wide = false>
constexpr auto some_tree() {
  constexpr std::uint32_t choice = mixed(Seed, Depth);
  if constexpr (Depth == 0 && Wide) {
    return std::tuple_element_t<choice % 3, std::tuple<std::type_identity<fanout::Tensor<float, 2>>,
                                                       std::type_identity<fanout::Tensor<float, 3>>,
                                                       std::type_identity<fanout::Tensor<std::uint16_t, 4>>>>();
  } else if constexpr (Depth == 0) {
    return std::tuple_element_t<
        choice % 6,
        std::tuple<std::type_identity<fanout::Tensor<float, 1>>, std::type_identity<fanout::Tensor<float, 3>>,
                   std::type_identity<fanout::Tensor<std::uint16_t, 2>>, std::type_identity<std::vector<float>>,
                   std::type_identity<std::vector<std::string>>,
                   std::type_identity<std::vector<std::vector<std::uint16_t>>>>>();
  } else {
    using A = typename decltype(some_tree<mixed(Seed, 100), Depth - 1, Wide>())::type;
    using B = typename decltype(some_tree<mixed(Seed, 200), choice / 16 % Depth, Wide>())::type;
    if constexpr (choice % 10 == 0) {
      return std::type_identity<std::tuple<B, A, B>>();
    } else if constexpr (choice % 10 == 1) {
      return std::type_identity<std::pair<A, B>>();
    } else if constexpr (choice % 10 == 2) {
      return std::type_identity<std::array<A, 2>>();
    } else if constexpr (choice % 10 == 3) {
      return std::type_identity<DictOf<A, B>>();
    } else if constexpr (choice % 10 == 4) {
      return std::type_identity<std::vector<A>>();
    } else if constexpr (choice % 10 == 5) {
      return std::type_identity<std::map<std::string, A>>();
    } else if constexpr (choice % 10 == 6) {
      return std::type_identity<std::unordered_map<int, A>>();
    } else if constexpr (choice % 10 == 7) {
      return std::type_identity<std::optional<A>>();
    } else if constexpr (choice % 10 == 8) {
      return std::type_identity<std::variant<std::monostate, B, A>>();
    } else {
      return std::type_identity<Both<A, B>>();
    }
  }
}
template <std::uint32_t Seed, std::uint32_t Depth, bool Wide = false>
using SomeTree = typename decltype(some_tree<Seed, Depth, Wide>())::type;

template <class X>
inline constexpr bool is_both = false;
template <class A, class B>
inline constexpr bool is_both<Both<A, B>> = true;

template <class X, class F>
auto map_arrays(const X& tree, const F& f);

template <class X, class F>
using mapped_t = decltype(map_arrays(std::declval<const X&>(), std::declval<const F&>()));

/// The tree with `f(array)` in the place of each array, asked in order.
template <class X, class F>
auto map_arrays(const X& tree, const F& f) {
  if constexpr (fanout::ArrayLeaf<X>) {
    return f(tree);
  } else if constexpr (std::is_same_v<X, std::monostate>) {
    return tree;
  } else if constexpr (is_both<X>) {
    return Both<mapped_t<decltype(tree.first_tree), F>, mapped_t<decltype(tree.second_tree), F>>{
        map_arrays(tree.first_tree, f), map_arrays(tree.second_tree, f)};
  } else if constexpr (fanout::DictNode<X>) {
    return [&]<class... K, class... T>(const fanout::Dict<fanout::detail::Entry<K, T>...>&) {
      return fanout::Dict<fanout::detail::Entry<K, mapped_t<T, F>>...>{
          std::tuple<mapped_t<T, F>...>{map_arrays(tree[K{}], f)...}};
    }(tree);
  } else if constexpr (fanout::MapNode<X>) {
    fanout::detail::rebind_map_t<X, mapped_t<typename X::mapped_type, F>> mapped;
    for (const auto& [key, value] : tree) mapped.emplace(key, map_arrays(value, f));
    return mapped;
  } else if constexpr (fanout::VectorNode<X>) {
    fanout::detail::rebind_element_t<X, mapped_t<typename X::value_type, F>> mapped;
    for (const auto& value : tree) mapped.push_back(map_arrays(value, f));
    return mapped;
  } else if constexpr (fanout::OptionalNode<X>) {
    fanout::detail::rebind_element_t<X, mapped_t<typename X::value_type, F>> mapped;
    if (tree.has_value()) mapped.emplace(map_arrays(*tree, f));
    return mapped;
  } else if constexpr (fanout::VariantNode<X>) {
    using Mapped = std::variant<std::monostate, mapped_t<std::variant_alternative_t<1, X>, F>,
                                mapped_t<std::variant_alternative_t<2, X>, F>>;
    if (tree.index() == 1) return Mapped(std::in_place_index<1>, map_arrays(std::get<1>(tree), f));
    if (tree.index() == 2) return Mapped(std::in_place_index<2>, map_arrays(std::get<2>(tree), f));
    return Mapped();
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return fanout::detail::rebind_tuple_t<X, mapped_t<std::tuple_element_t<I, X>, F>...>{
          map_arrays(std::get<I>(tree), f)...};
    }
    (std::make_index_sequence<std::tuple_size_v<X>>());
  }
}

/// Puts random values, with as many rows on this axis of each array, in a tree that was default constructed. -1 is the
/// last axis.
template <class X>
void fill(X& tree, Random& random, std::size_t rows, int axis = 0) {
  if constexpr (requires { tree.extents(); }) {
    tree = [&]<class T, std::size_t R>(const fanout::Tensor<T, R>&) {
      fanout::Extents<R> extents;
      for (std::size_t a = 0; a < R; ++a) extents.values[a] = below(random, 4);
      extents.values[axis < 0 ? R - static_cast<std::size_t>(-axis) : static_cast<std::size_t>(axis)] = rows;
      return fanout::Tensor<T, R>::uninitialized(extents, {});
    }(tree);
    for (auto& x : tree) x = static_cast<std::remove_reference_t<decltype(x)>>(1 + below(random, 10000));
  } else if constexpr (std::is_arithmetic_v<X>) {
    tree = static_cast<X>(1 + below(random, 10000));
  } else if constexpr (std::is_same_v<X, std::string>) {
    tree = std::string(below(random, 30), 'x') + std::to_string(below(random, 100));
  } else if constexpr (fanout::ArrayLeaf<X>) {
    tree = X(rows);  // a map may fill it twice
    for (auto& row : tree) fill(row, random, below(random, 4));
  } else if constexpr (is_both<X>) {
    fill(tree.first_tree, random, rows, axis);
    fill(tree.second_tree, random, rows, axis);
  } else if constexpr (fanout::DictNode<X>) {
    std::apply([&](auto&... values) { (fill(values, random, rows, axis), ...); }, tree.values);
  } else if constexpr (fanout::MapNode<X>) {
    for (std::size_t i = below(random, 4); i > 0; --i) {
      if constexpr (std::is_same_v<typename X::key_type, int>) {
        fill(tree[static_cast<int>(below(random, 100)) - 50], random, rows, axis);
      } else {
        fill(tree["key" + std::to_string(below(random, 100))], random, rows, axis);
      }
    }
  } else if constexpr (fanout::VectorNode<X>) {
    tree.resize(below(random, 4));
    for (auto& value : tree) fill(value, random, rows, axis);
  } else if constexpr (fanout::OptionalNode<X>) {
    if (below(random, 4) != 0) fill(tree.emplace(), random, rows, axis);
  } else if constexpr (fanout::VariantNode<X>) {
    const std::size_t which = below(random, 5);
    if (which == 1 || which == 2) fill(tree.template emplace<1>(), random, rows, axis);
    if (which >= 3) fill(tree.template emplace<2>(), random, rows, axis);
  } else {
    std::apply([&](auto&... values) { (fill(values, random, rows, axis), ...); }, tree);
  }
}

}  // namespace fanout_test
