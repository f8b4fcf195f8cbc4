// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// A range of contiguous elements.
template <class X>
concept SideBySide = requires(const X& x) {
  *x.data();
  { x.size() } -> std::convertible_to<std::size_t>;
};

/// A vector whose elements are rows, whatever their type. rows() makes it.
template <class X>
struct Rows {
  X value;  ///< a const reference to the caller's lvalue, or the rvalue itself
};

template <class X>
inline constexpr bool wraps_tree<Rows<X>> = true;

}  // namespace detail

template <class X>
struct leaf_traits<detail::Rows<X>> {
  using without_axes = void;
  using piece_type = std::span<const std::remove_reference_t<decltype(*std::declval<const X&>().data())>>;

  static std::size_t rows(const detail::Rows<X>& x) { return x.value.size(); }
  static piece_type piece(const detail::Rows<X>& x, std::size_t begin, std::size_t end) {
    return piece_type(x.value.data(), x.value.size()).subspan(begin, end - begin);
  }
};

namespace detail {

/// False if the elements are trees: a shard is handed whole trees, not its rows of each.
template <class X>
inline constexpr bool splits_by_rows<Rows<X>> = ArrayLeaf<std::remove_cvref_t<X>>;

}  // namespace detail

/// `model(rows(tensors))`: the elements of a vector, a `std::array` or a span are rows, whatever their type. `forward`
/// receives a `std::span<const T>` of the shard's elements. Without rows(), a vector of tensors is a list, and each
/// tensor is split. Copies nothing. Borrows an lvalue until the call has returned. Takes over an rvalue.
///
/// `return rows(std::move(tensors))` from `forward`: concatenates the elements of all shards in row order, in a
/// std::vector. The elements own their data. Tensors are in the memory in which the call gathers. An lvalue does not
/// compile.
template <class X>
detail::Rows<detail::kept_t<X>> rows(X&& value) {
  static_assert(detail::SideBySide<std::remove_cvref_t<X>>,
                "fanout: rows(x) takes a std::vector, a std::array or a std::span, whose elements are contiguous; "
                "those of a std::vector<bool> are not");
  return {std::forward<X>(value)};
}

}}  // namespace fanout::v0
