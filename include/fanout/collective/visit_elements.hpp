// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The elements of one array, or one number, of a tree: T is const where they may only be read.
template <class T>
struct Elements {
  T* data = nullptr;
  std::size_t count = 0;
  MemorySpace space = host_memory;
  SmallVector<std::size_t, 4> extents = {};  // none of a number
};

template <class X>
concept ShapedArray = ArrayLeaf<std::remove_const_t<X>> && requires(X& x) {
  x.data();
  { x.extents().size() } -> std::convertible_to<std::size_t>;
  { x.space() } -> std::convertible_to<MemorySpace>;
} && !requires(X & x) {
  x.strides();
};

template <class X>
concept ElementRange = ArrayLeaf<std::remove_const_t<X>> && !ShapedArray<X> && requires(X & x) {
  requires std::is_trivially_copyable_v<std::remove_reference_t<decltype(*x.data())>>;
  { x.size() } -> std::convertible_to<std::size_t>;
}
&&!requires(X & x) { x.strides(); };

/// A tree of one array or one number.
template <class X>
concept OneArray = ShapedArray<X> || ElementRange<X> || Scalar<std::remove_const_t<X>>;

template <class X>
struct element_of {
  using type = std::remove_pointer_t<decltype(std::declval<X&>().data())>;
};
template <Scalar X>
struct element_of<X> {
  using type = X;
};
template <Scalar X>
struct element_of<const X> {
  using type = const X;
};
template <class X>
using element_of_t = typename element_of<X>::type;

template <class X, class F>
void visit_elements_of(X& tree, const LeafPath& path, const F& f);

template <class... K, class... T, class F>
void visit_dict_elements(Dict<Entry<K, T>...>& dict, const LeafPath& path, const F& f) {
  (visit_elements_of(dict[K{}], LeafPath(path, K::name()), f), ...);
}
template <class... K, class... T, class F>
void visit_dict_elements(const Dict<Entry<K, T>...>& dict, const LeafPath& path, const F& f) {
  (visit_elements_of(dict[K{}], LeafPath(path, K::name()), f), ...);
}

template <class X, class F, std::size_t... I>
void visit_tuple_elements(X& tuple, const LeafPath& path, const F& f, std::index_sequence<I...>) {
  (visit_elements_of(std::get<I>(tuple), LeafPath(path, I), f), ...);
}

/// The I-th field as it was declared: FieldsOf shows all fields as those of a const struct.
template <class X, std::size_t I>
auto& field_of(X& tree) {
  using Struct = std::remove_const_t<X>;
  using Declared = std::remove_reference_t<typename FieldsOf<Struct>::template type<I>>;
  if constexpr (std::is_const_v<X>) {
    return FieldsOf<Struct>::template get<I>(tree);
  } else {
    return const_cast<Declared&>(FieldsOf<Struct>::template get<I>(tree));  // of an object that is not const
  }
}

template <class X, class F, std::size_t... I>
void visit_field_elements(X& tree, const LeafPath& path, const F& f, std::index_sequence<I...>) {
  (visit_elements_of(field_of<X, I>(tree), field_path<std::remove_const_t<X>, I>(path), f), ...);
}

/// Calls `f(elements, path)` for every array and every number of the tree, in its order. What else stands in a tree is
/// refused: it would not be the same on all ranks, unseen.
template <class X, class F>
void visit_elements_of(X& tree, const LeafPath& path, const F& f) {
  using Node = std::remove_const_t<X>;
  if constexpr (ShapedArray<X>) {
    using T = std::remove_pointer_t<decltype(tree.data())>;
    Elements<T> elements{.data = tree.data(), .count = tree.extents().size(), .space = tree.space()};
    for (const std::size_t extent : tree.extents().values) elements.extents.push_back(extent);
    f(elements, path);
  } else if constexpr (ElementRange<X>) {
    using T = std::remove_pointer_t<decltype(tree.data())>;
    Elements<T> elements{.data = tree.data(), .count = tree.size()};
    elements.extents.push_back(elements.count);
    f(elements, path);
  } else if constexpr (Scalar<Node>) {
    f(Elements<X>{.data = &tree, .count = 1}, path);
  } else if constexpr (DictNode<Node>) {
    visit_dict_elements(tree, path, f);
  } else if constexpr (MapNode<Node>) {
    std::size_t position = 0;
    for (auto& entry : tree) {
      visit_elements_of(entry.second, LeafPath::at_key(path, key_text(entry.first, position++)), f);
    }
  } else if constexpr ((VectorNode<Node> || SpanNode<Node> || owns_elements<Node> || shows_elements<Node>)&&requires {
                         requires std::is_lvalue_reference_v<decltype(tree[std::size_t{0}])>;
                       }) {
    for (std::size_t i = 0; i < tree.size(); ++i) visit_elements_of(tree[i], LeafPath(path, i), f);
  } else if constexpr (OptionalNode<Node>) {
    if (tree.has_value()) visit_elements_of(*tree, path, f);
  } else if constexpr (TupleNode<Node>) {
    visit_tuple_elements(tree, path, f, std::make_index_sequence<std::tuple_size_v<Node>>{});
  } else if constexpr (StructNode<Node>) {
    visit_field_elements(tree, path, f, std::make_index_sequence<FieldsOf<Node>::size>{});
  } else {
    static_assert(sizeof(X) == 0,
                  "fanout: a collective takes arrays (tensors, views, vectors, spans), numbers, and trees of these: "
                  "tuples, dicts, maps, vectors, optionals and plain structs, with nothing else in them");
  }
}

}}}  // namespace fanout::v0::detail
