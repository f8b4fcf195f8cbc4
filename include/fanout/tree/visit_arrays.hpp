// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

template <class X, class F>
void visit_arrays(const X& tree, const LeafPath& path, F&& f);

namespace detail {

template <class... K, class... T, class F>
void visit_entries(const Dict<Entry<K, T>...>& dict, const LeafPath& path, F& f) {
  (visit_arrays(dict[K{}], LeafPath(path, K::name()), f), ...);
}

template <class X, class F, std::size_t... I>
void visit_elements(const X& tuple, const LeafPath& path, F& f, std::index_sequence<I...>) {
  (visit_arrays(std::get<I>(tuple), LeafPath(path, I), f), ...);
}

template <class X, class F>
void visit_alternative(const X& variant, const LeafPath& path, F& f) {
  if (variant.valueless_by_exception()) return;
  at_alternative(variant, [&](auto place) {
    visit_arrays(AlternativesOf<X>::template get<decltype(place)::value>(variant), path, f);
  });
}

template <class X, class F, std::size_t... I>
void visit_fields(const X& tree, const LeafPath& path, F& f, std::index_sequence<I...>) {
  (visit_arrays(FieldsOf<X>::template get<I>(tree), field_path<X, I>(path), f), ...);
}

}  // namespace detail

/// Calls `f(array, path)` for each array leaf of the tree, in its order, and for what splits itself. Subtrees whose
/// type holds no array are not walked, nor are structs whose fields cannot be found. Of a variant the tree that it
/// holds is walked.
template <class X, class F>
void visit_arrays(const X& tree, const LeafPath& path, F&& f) {
  if constexpr (!HasArrayLeaf<X>) {
    return;
  } else if constexpr (ArrayLeaf<X> || splits_itself<X>) {
    f(tree, path);
  } else if constexpr (DictNode<X>) {
    detail::visit_entries(tree, path, f);
  } else if constexpr (MapNode<X>) {
    std::size_t position = 0;
    for (const auto& entry : tree) {
      visit_arrays(entry.second, LeafPath::at_key(path, key_text(entry.first, position++)), f);
    }
  } else if constexpr (VectorNode<X> || SpanNode<X>) {
    for (std::size_t i = 0; i < tree.size(); ++i) visit_arrays(tree[i], LeafPath(path, i), f);
  } else if constexpr (OptionalNode<X>) {
    if (tree.has_value()) visit_arrays(*tree, path, f);
  } else if constexpr (TupleNode<X>) {
    detail::visit_elements(tree, path, f, std::make_index_sequence<std::tuple_size_v<X>>{});
  } else if constexpr (VariantNode<X>) {
    detail::visit_alternative(tree, path, f);
  } else if constexpr (StructNode<X>) {
    detail::visit_fields(tree, path, f, std::make_index_sequence<FieldsOf<X>::size>{});
  }
}

}}  // namespace fanout::v0
