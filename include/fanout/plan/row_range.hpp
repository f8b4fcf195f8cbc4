// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/annotate.hpp>

namespace fanout::inline v0 {

/// A row by both of its numbers.
struct RowNumbers {
  std::size_t local = 0;   ///< in its shard, from 0: for the shard's arrays and outputs, and for ctx.random()
  std::size_t global = 0;  ///< in the whole batch

  friend constexpr bool operator==(const RowNumbers&, const RowNumbers&) = default;
};

/// The rows [begin, end) of a batch, by their numbers in the whole batch. A shard's arrays, its outputs and ctx.random()
/// count from the shard's first row instead; enumerate() and local() give these numbers.
struct RowRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  FANOUT_HOST_DEVICE constexpr std::size_t size() const noexcept { return end - begin; }
  FANOUT_HOST_DEVICE constexpr bool empty() const noexcept { return begin == end; }

  /// The number from `begin` on of a row of the batch. Of a row before `begin` it is no number that a shard has.
  FANOUT_HOST_DEVICE constexpr std::size_t local(std::size_t global) const noexcept { return global - begin; }

  /// The RowNumbers of each row, in order; made by enumerate().
  class Enumerated {
   public:
    class Iterator {
     public:
      using value_type = RowNumbers;
      using difference_type = std::ptrdiff_t;

      constexpr Iterator() noexcept = default;
      FANOUT_HOST_DEVICE constexpr explicit Iterator(const RowNumbers& at) noexcept : at_(at) {}

      FANOUT_HOST_DEVICE constexpr RowNumbers operator*() const noexcept { return at_; }
      FANOUT_HOST_DEVICE constexpr Iterator& operator++() noexcept {
        ++at_.local;
        ++at_.global;
        return *this;
      }
      FANOUT_HOST_DEVICE constexpr Iterator operator++(int) noexcept {
        const Iterator before = *this;
        ++*this;
        return before;
      }
      FANOUT_HOST_DEVICE friend constexpr bool operator==(const Iterator& a, const Iterator& b) noexcept {
        return a.at_.local == b.at_.local;
      }

     private:
      RowNumbers at_;
    };

    FANOUT_HOST_DEVICE constexpr Enumerated(std::size_t begin, std::size_t size) noexcept
        : begin_(begin), size_(size) {}

    FANOUT_HOST_DEVICE constexpr Iterator begin() const noexcept { return Iterator({0, begin_}); }
    FANOUT_HOST_DEVICE constexpr Iterator end() const noexcept { return Iterator({size_, begin_ + size_}); }

   private:
    std::size_t begin_;
    std::size_t size_;
  };

  /// `for (const auto [local, global] : rows.enumerate()) y[local] = f(global, ctx.random(local));`
  FANOUT_HOST_DEVICE constexpr Enumerated enumerate() const noexcept { return {begin, size()}; }

  friend constexpr bool operator==(const RowRange&, const RowRange&) = default;
};

/// `[15, 30)`.
inline std::string to_string(const RowRange& rows) {
  std::string text = "[";  // added to, since g++ 12 warns of an overlap that is none in "[" + to_string(...) at -O3
  text += std::to_string(rows.begin) + ", " + std::to_string(rows.end) + ")";
  return text;
}

}  // namespace fanout::inline v0
