// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout::inline v0 {

/// What makes a std::vector or a std::span an array, one element a row, and not a vector of trees: strings, and
/// trivially copyable types that show no array themselves. `std::vector<bool>` holds no bools that could be shown.
template <class T>
concept ArrayElement = std::same_as<T, std::string> ||
    (std::is_trivially_copyable_v<T> && !HasArrayLeaf<T> && !wraps_tree<T> && !std::same_as<T, bool>);

namespace detail {

/// Rows of a range of elements in host memory, one element a row.
template <class Range, class T>
struct element_rows {
  using piece_type = std::span<const T>;
  static std::size_t rows(const Range& range) { return range.size(); }
  static piece_type piece(const Range& range, std::size_t begin, std::size_t end) {
    return piece_type(range.data(), range.size()).subspan(begin, end - begin);
  }
};

}  // namespace detail

template <ArrayElement T, class Allocator>
struct leaf_traits<std::vector<T, Allocator>> : detail::element_rows<std::vector<T, Allocator>, T> {};

template <class T, std::size_t N>
  requires(ArrayElement<std::remove_cv_t<T>> || std::same_as<std::remove_cv_t<T>, bool>)
struct leaf_traits<std::span<T, N>> : detail::element_rows<std::span<T, N>, std::remove_cv_t<T>> {};

}  // namespace fanout::inline v0
