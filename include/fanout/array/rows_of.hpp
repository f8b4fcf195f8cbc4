// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/view.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// The rows of an array as a range of Views of R - 1 axes. Made by rows_of(). Borrows the array.
template <class T, std::size_t R>
class RowsOf {
 public:
  class iterator {
   public:
    using value_type = View<T, R - 1>;
    using difference_type = std::ptrdiff_t;

    iterator() = default;
    iterator(const View<T, R>& array, std::size_t row) noexcept : array_(array), row_(row) {}

    value_type operator*() const { return array_.row(row_); }
    iterator& operator++() noexcept {
      ++row_;
      return *this;
    }
    iterator operator++(int) noexcept { return iterator(array_, row_++); }
    /// Only for iterators over the same array.
    friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.row_ == b.row_; }

   private:
    View<T, R> array_;
    std::size_t row_ = 0;
  };

  explicit RowsOf(const View<T, R>& array) noexcept : array_(array) {}

  iterator begin() const noexcept { return {array_, 0}; }
  iterator end() const noexcept { return {array_, size()}; }
  std::size_t size() const noexcept { return array_.extents()[0]; }
  bool empty() const noexcept { return size() == 0; }

 private:
  View<T, R> array_;
};

}  // namespace detail

/// Iterates over the rows of a Tensor or a View of two or more axes. Each row is a View of one axis less:
///
///     for (auto row : fanout::rows_of(x)) std::sort(row.begin(), row.end());
///
/// Borrows the array, and copies nothing. Rows of a const tensor only read. An array of one axis is itself a range of
/// its elements.
template <class X>
  requires(detail::ContiguousArray<std::remove_cvref_t<X>>&& std::remove_cvref_t<X>::rank > 1)
auto rows_of(X&& x) {
  View view = std::forward<X>(x);
  return detail::RowsOf<typename decltype(view)::element_type, decltype(view)::rank>(view);
}

}}  // namespace fanout::v0
