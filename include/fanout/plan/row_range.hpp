// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/annotate.hpp>
#include <fanout/base/separate_compilation.hpp>

namespace fanout { inline namespace v0 {

/// A row by both of its numbers.
struct RowNumbers {
  std::size_t local = 0;   ///< in its shard, from 0: for the shard's arrays and outputs, and for ctx.random()
  std::size_t global = 0;  ///< in the whole batch

  FANOUT_HOST_DEVICE constexpr RowNumbers& operator++() noexcept {
    ++local;
    ++global;
    return *this;
  }
  FANOUT_HOST_DEVICE friend constexpr bool operator==(const RowNumbers& a, const RowNumbers& b) noexcept {
    return a.local == b.local && a.global == b.global;
  }
};

/// The rows [first, last) of a batch, by their numbers in the whole batch: `for (const std::size_t row : rows)`. A
/// shard's arrays, its outputs and ctx.random() count from the shard's first row instead: see local() and enumerate().
struct RowRange {
  std::size_t first = 0;
  std::size_t last = 0;  ///< one past the last row

  /// Goes from one row to the next. Number is std::size_t or RowNumbers.
  template <class Number>
  class Iterator {
   public:
    using value_type = Number;
    using difference_type = std::ptrdiff_t;

    constexpr Iterator() noexcept = default;
    FANOUT_HOST_DEVICE constexpr explicit Iterator(const Number& at) noexcept : at_(at) {}

    FANOUT_HOST_DEVICE constexpr Number operator*() const noexcept { return at_; }
    FANOUT_HOST_DEVICE constexpr Iterator& operator++() noexcept {
      ++at_;
      return *this;
    }
    FANOUT_HOST_DEVICE constexpr Iterator operator++(int) noexcept {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    FANOUT_HOST_DEVICE friend constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
      return a.at_ == b.at_;
    }

   private:
    Number at_{};
  };

  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return last - first; }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return first == last; }
  FANOUT_HOST_DEVICE constexpr Iterator<std::size_t> begin() const noexcept { return Iterator<std::size_t>(first); }
  FANOUT_HOST_DEVICE constexpr Iterator<std::size_t> end() const noexcept { return Iterator<std::size_t>(last); }

  /// The local number of a row of the batch, which counts from `first`. A row before `first` has none.
  FANOUT_HOST_DEVICE constexpr std::size_t local(std::size_t global) const noexcept { return global - first; }

  /// The RowNumbers of each row, in order. Made by enumerate().
  class Enumerated {
   public:
    FANOUT_HOST_DEVICE constexpr Enumerated(const RowNumbers& first, const RowNumbers& last) noexcept
        : first_(first), last_(last) {}

    FANOUT_HOST_DEVICE constexpr Iterator<RowNumbers> begin() const noexcept { return Iterator<RowNumbers>(first_); }
    FANOUT_HOST_DEVICE constexpr Iterator<RowNumbers> end() const noexcept { return Iterator<RowNumbers>(last_); }

   private:
    RowNumbers first_;
    RowNumbers last_;
  };

  /// `for (const auto [local, global] : rows.enumerate()) y[local] = f(global, ctx.random(local));`
  FANOUT_HOST_DEVICE constexpr Enumerated enumerate() const noexcept { return {{0, first}, {size(), last}}; }

  friend constexpr bool operator==(const RowRange&, const RowRange&) = default;
};

/// The range as text: `[15, 30)`.
[[gnu::cold]] FANOUT_INLINE std::string to_string(const RowRange& rows);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/plan/row_range.ipp>
#endif
