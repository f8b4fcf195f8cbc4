// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/tensor.hpp>
#include <fanout/array/vector_leaf.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/collective/visit_elements.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/with_rule.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/mpi/group/message_blocks.hpp>
#include <fanout/tree/children.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// How a tree travels between ranks. The sender and the receiver have trees of one structure, so only extents and
// elements are sent: the extents first, so that the receiver can make the arrays.

/// Calls `f(elements, path)` for every array and number of a tree, also under rules: psum(x), Mean<T>.
template <class X, class F>
void visit_ranked(const X& tree, const LeafPath& path, const F& f) {
  if constexpr (wraps_tree<X>) {
    visit_ranked(tree.value, path, f);
  } else if constexpr (!OneArray<const X> && Rebuildable<X>) {
    visit_children(tree, path, [&f](const auto& child, const LeafPath& at, auto) { visit_ranked(child, at, f); });
  } else {
    visit_elements_of(tree, path, f);
  }
}

/// The rule of a WithRule or a ReducedMember.
template <class X>
struct RuleOf;
template <template <class, class> class Wrap, class Rule, class X>
struct RuleOf<Wrap<Rule, X>> {
  using type = Rule;
};
template <class X>
concept WrapsByRule = requires {
  RuleOf<X>::type::name;
};

struct WithoutReferences {
  template <class Child>
  static constexpr bool is = !std::is_reference_v<Child>;
};
struct HoldsValues;
/// A tree without references to values elsewhere.
template <class X>
inline constexpr bool holds_values = true;
template <class X>
  requires wraps_tree<X>
inline constexpr bool holds_values<X> =
    !std::is_reference_v<decltype(X::value)> && holds_values<std::remove_cvref_t<decltype(X::value)>>;
template <class X>
  requires(!wraps_tree<X> && !OneArray<const X> && Rebuildable<X>)
inline constexpr bool holds_values<X> = all_children<WithoutReferences, X> && all_children<HoldsValues, X>;
struct HoldsValues {
  template <class Child>
  static constexpr bool is = holds_values<std::remove_cvref_t<Child>>;
};

/// The rule of a tree as users write it, `psum`.
template <class X>
std::string rule_of() {
  return type_name<X>();
}
template <WrapsByRule X>
std::string rule_of() {
  return RuleOf<X>::type::name;
}

/// Appends what a tree is made of, apart from extents: `float[2 axes] at input.x, psum(int at input.n)`.
template <class X>
void describe_structure(const X& tree, const LeafPath& path, std::string& text) {
  if constexpr (wraps_tree<X>) {
    text += rule_of<X>() + "(";
    describe_structure(tree.value, path, text);
    text += ")";
  } else if constexpr (!OneArray<const X> && Rebuildable<X>) {
    check_compared_keys(tree, path);
    bool first = true;
    visit_children(tree, path, [&](const auto& child, const LeafPath& at, auto) {
      if (!std::exchange(first, false)) text += ", ";
      describe_structure(child, at, text);
    });
  } else {
    visit_elements_of(tree, path, [&text]<class T>(const Elements<T>& elements, const LeafPath& at) {
      text += type_name<std::remove_const_t<T>>();
      const std::size_t axes = elements.extents.size();
      if (axes != 0) text += "[" + std::to_string(axes) + (axes == 1 ? " axis]" : " axes]");
      text += " at " + to_string(at);
    });
  }
}

/// The extents of all arrays of a tree, in its order.
template <class X>
std::vector<std::uint64_t> extents_in(const X& tree, const LeafPath& root) {
  std::vector<std::uint64_t> extents;
  visit_ranked(tree, root, [&extents](const auto& elements, const LeafPath&) {
    for (const std::size_t extent : elements.extents) extents.push_back(extent);
  });
  return extents;
}

/// The rows of the first array of a tree; 0 without arrays.
template <class X>
std::size_t rows_in(const X& tree, const LeafPath& root) {
  std::size_t rows = 0;
  bool found = false;
  visit_ranked(tree, root, [&](const auto& elements, const LeafPath&) {
    if (found || elements.extents.size() == 0) return;
    found = true;
    rows = elements.extents[0];
  });
  return rows;
}

/// The elements of a tree as a message that is sent. Elements in device memory are copied to the host.
struct SentTree {
  template <class X>
  void add(const X& tree, const LeafPath& root) {
    visit_ranked(tree, root, [this](const auto& elements, const LeafPath&) {
      const std::size_t bytes = elements.count * sizeof(*elements.data);
      if (elements.space == host_memory) return blocks.add(elements.data, bytes);
      const Storage& here = staged.emplace_back(backend::Memory{}, bytes);
      backend::transfer(backend::Memory{}, here.data(), elements.space, elements.data, bytes);
      blocks.add(here.data(), bytes);
    });
  }

  MessageBlocks blocks;
  std::list<Storage> staged;  // no deque, which allocates when it is made
};

/// A tree whose elements a message fills. Views and spans in it show memory that this owns.
template <class X>
class ReceivedTree {
 public:
  /// Of the structure of `like`, with these extents. The elements are not set yet.
  ReceivedTree(const X& like, const LeafPath& root, const std::uint64_t* extents)
      : next_(extents), tree_(node(like, root)) {}
  ReceivedTree(const ReceivedTree&) = delete;
  ReceivedTree& operator=(const ReceivedTree&) = delete;

  const X& tree() const noexcept { return tree_; }
  /// Moves the tree out, which must own its elements.
  X take() { return std::move(tree_); }

  /// The elements, as the message that they are received from.
  MessageBlocks blocks(const LeafPath& root) const {
    MessageBlocks blocks;
    visit_ranked(tree_, root, [&blocks](const auto& elements, const LeafPath&) {
      blocks.add(elements.data, elements.count * sizeof(*elements.data));
    });
    return blocks;
  }

 private:
  template <class Node>
  Node node(const Node& like, const LeafPath& path) {
    if constexpr (wraps_tree<Node>) {
      return Node{node(like.value, path)};
    } else if constexpr (ShapedArray<const Node>) {
      return array<Node>(like.extents());
    } else if constexpr (ElementRange<const Node>) {
      return array<Node>(Extents<1>{});
    } else if constexpr (Scalar<Node>) {
      return like;
    } else {
      return rebuild<Node>(like, path,
                           [this](const auto& child, const LeafPath& at, auto) { return this->node(child, at); });
    }
  }

  template <class Array, std::size_t R>
  Array array(Extents<R> extents) {
    using T = std::remove_pointer_t<decltype(std::declval<Array&>().data())>;
    for (std::size_t& extent : extents.values) extent = static_cast<std::size_t>(*next_++);
    if constexpr (requires { Array::uninitialized(extents); }) {
      return Array::uninitialized(extents);
    } else if constexpr (owns_elements<Array>) {
      return Array(extents.size());
    } else {
      const Storage& here = owned_.emplace_back(backend::Memory{}, extents.size() * sizeof(T));
      auto* const data = static_cast<T*>(here.data());
      if constexpr (std::constructible_from<Array, T*, Extents<R>>) {
        return Array(data, extents);
      } else {
        return Array(data, extents.size());
      }
    }
  }

  std::deque<Storage> owned_;
  const std::uint64_t* next_;
  X tree_;  // last, since what it shows is made first
};

}}}  // namespace fanout::v0::detail
