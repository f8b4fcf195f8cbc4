// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/error.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The parts of a row range, in order. Made by parts().
class RowParts {
 public:
  class Iterator {
   public:
    using value_type = RowRange;
    using difference_type = std::ptrdiff_t;

    constexpr Iterator() noexcept = default;
    constexpr Iterator(const RowRange& rest, std::size_t rows) noexcept : rest_(rest), rows_(rows) {}

    constexpr RowRange operator*() const noexcept {
      return {rest_.first, rest_.size() < rows_ ? rest_.last : rest_.first + rows_};
    }
    constexpr Iterator& operator++() noexcept {
      rest_.first = (**this).last;
      return *this;
    }
    constexpr Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.rest_.first == b.rest_.first;
    }

   private:
    RowRange rest_;
    std::size_t rows_ = 1;
  };

  constexpr RowParts(const RowRange& all, std::size_t rows) noexcept : all_(all), rows_(rows) {}

  constexpr Iterator begin() const noexcept { return {all_, rows_}; }
  constexpr Iterator end() const noexcept { return {{all_.last, all_.last}, rows_}; }

 private:
  RowRange all_;
  std::size_t rows_;
};

}  // namespace detail

/// The parts of `all` of `rows` rows each, in order; the last part may have fewer:
///
///     for (const fanout::RowRange part : fanout::parts(mine, 65'536)) out.write(part, model(images.read(part)));
///
/// An empty range has no parts. Throws InvalidArgument if `rows` is 0.
constexpr detail::RowParts parts(const RowRange& all, std::size_t rows) {
  if (rows == 0) {
    throw InvalidArgument(
        explain({.what = "parts without rows", .where = "parts", .expected = "1 row or more", .found = "0"}));
  }
  return {all, rows};
}

}}  // namespace fanout::v0
