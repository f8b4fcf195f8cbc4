// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/scatter/split_tree.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// A vector that is a list of arguments. Each element is split, or goes to all shards whole. each() makes it.
template <class X>
struct Each {
  X value;  ///< a const reference to the caller's lvalue, or the rvalue itself
};

template <class X>
inline constexpr bool wraps_tree<Each<X>> = true;

}  // namespace detail

template <class X>
inline constexpr bool splits_itself<detail::Each<X>> = true;

/// `model(x, each(names))` passes the elements of a vector or a span as a list of arguments, not as rows. Elements with
/// arrays are split. A list of elements without arrays goes to all shards whole. A vector of tensors is such a list
/// without each(). Borrows an lvalue until the call has returned. Takes over an rvalue.
///
/// `return each(std::move(numbers))` from `forward`: each element is gathered with the elements at the same place of
/// the other shards. Throws StructureMismatch if the lists have different lengths. An lvalue does not compile.
template <class X>
detail::Each<detail::kept_t<X>> each(X&& value) {
  static_assert(
      VectorNode<std::remove_cvref_t<X>> || SpanNode<std::remove_cvref_t<X>> || ArrayLeaf<std::remove_cvref_t<X>>,
      "fanout: each(x) takes a std::vector or a std::span");
  return {std::forward<X>(value)};
}

namespace detail {

/// False if the elements hold no arrays: then each shard is handed the whole list.
template <class X>
inline constexpr bool splits_by_rows<Each<X>> =
    HasArrayLeaf<std::remove_cv_t<typename std::remove_cvref_t<X>::value_type>>;

template <class X>
struct scatter_defaults<Each<X>> {
  using Value = std::remove_cvref_t<X>;
  using Element = std::remove_cv_t<typename Value::value_type>;
  static constexpr bool is_split = HasArrayLeaf<Element>;

  template <class T>
  struct pieces {
    using type = const Value&;
  };
  template <class T>
    requires HasArrayLeaf<T>
  struct pieces<T> {
    using type = std::vector<held_piece_t<T>>;
  };
  using piece_type = typename pieces<Element>::type;

  static piece_type piece(const Each<X>& x, [[maybe_unused]] const ScatterTarget& place,
                          [[maybe_unused]] const LeafPath& path) {
    if constexpr (is_split) {
      return split_children<piece_type>(x.value, place, path);
    } else {
      return x.value;
    }
  }
  template <class F>
  static void visit_rows([[maybe_unused]] const Each<X>& x, [[maybe_unused]] int axis,
                         [[maybe_unused]] const LeafPath& path, [[maybe_unused]] F& f) {
    if constexpr (is_split) {
      visit_children(x.value, path, [axis, &f](const auto& element, const LeafPath& at, auto) {
        detail::visit_rows(element, axis, at, f);
      });
    }
  }
};

}  // namespace detail
}}  // namespace fanout::v0
