// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class T, class Allocator>
inline constexpr bool owns_elements<std::vector<T, Allocator>> = true;
template <class T, std::size_t N>
inline constexpr bool shows_elements<std::span<T, N>> = true;

}  // namespace detail

/// A type whose vectors and spans are arrays of one axis, one element per row: numbers, strings, structs, optionals,
/// maps and vectors of these. A vector of tensors, views, spans or outputs is a list of trees instead.
/// `std::vector<bool>` is no array, since it stores no bool that a span could refer to.
template <class T>
concept ArrayElement = !std::same_as<T, bool> && !detail::HoldsTree<T>;

namespace detail {

/// The leaf traits of a contiguous range in host memory, one element per row. A piece is a span that borrows the range.
template <class Range, class T>
struct element_rows {
  using piece_type = std::span<const T>;
  static std::size_t rows(const Range& range) { return std::size(range); }
  static piece_type piece(const Range& range, std::size_t begin, std::size_t end) {
    return piece_type(std::data(range), std::size(range)).subspan(begin, end - begin);
  }
};

template <class T>
concept Letter = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

}  // namespace detail

template <class T, std::size_t N>
  requires((ArrayElement<T> || std::same_as<T, bool>)&&!detail::Letter<T>)  // a string literal is not an array of rows
struct leaf_traits<T[N]> : detail::element_rows<T[N], T> {};

template <ArrayElement T, class Allocator>
struct leaf_traits<std::vector<T, Allocator>> : detail::element_rows<std::vector<T, Allocator>, T> {};

template <class T, std::size_t N>
  requires(ArrayElement<std::remove_cv_t<T>> || std::same_as<std::remove_cv_t<T>, bool>)
struct leaf_traits<std::span<T, N>> : detail::element_rows<std::span<T, N>, std::remove_cv_t<T>> {};

}}  // namespace fanout::v0
