// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/tree/alternatives.hpp>
#include <fanout/tree/child_types.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/dict.hpp>
#include <fanout/tree/fields.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The elements of one array, or one number, of a tree. T is const if they may only be read.
template <class T>
struct Elements {
  T* data = nullptr;
  std::size_t count = 0;
  MemorySpace space = host_memory;
  SmallVector<std::size_t, 4> extents = {};  // empty for a number
};

template <class X>
concept ShapedArray = ArrayLeaf<std::remove_const_t<X>> && requires(X& x) {
  x.data();
  { x.extents().size() } -> std::convertible_to<std::size_t>;
  { x.space() } -> std::convertible_to<MemorySpace>;
} && !requires(X & x) {
  x.strides();
};

/// A vector or a span of elements that can be copied as bytes. No other array with data() and size(): a matrix of Eigen
/// has its elements in another order.
template <class X>
concept ElementRange = ArrayLeaf<std::remove_const_t<X>> &&
    (owns_elements<std::remove_const_t<X>> || shows_elements<std::remove_const_t<X>>)&&requires(X& x) {
  requires std::is_trivially_copyable_v<std::remove_reference_t<decltype(*x.data())>>;
  { x.size() } -> std::convertible_to<std::size_t>;
};

/// A matrix of another library, as Eigen's. Only its adapter knows in which order its elements are.
template <class X>
concept ForeignMatrix = !Rebuildable<X> && requires(const X& x) {
  x.data();
  x.rows();
  x.cols();
};

/// A tree that is one array or one number.
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

/// Calls `f(elements, path)` for every array and every number of the tree, in its order. Other values in the tree do
/// not compile: they could differ between ranks unseen.
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
  } else if constexpr (Rebuildable<Node>) {
    check_compared_keys<Node>(tree, path);
    visit_children(tree, path, [&f](auto& child, const LeafPath& at, auto) { visit_elements_of(child, at, f); });
  } else {
    static_assert(sizeof(X) == 0,
                  "fanout: a collective takes arrays (tensors, views, vectors, spans), numbers, and trees of these: "
                  "tuples, dicts, maps, vectors, optionals, variants and plain structs, with nothing else in them; a "
                  "matrix of another library goes in as the view that as_view(x) makes");
  }
}

}}}  // namespace fanout::v0::detail
