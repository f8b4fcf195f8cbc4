// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

/// `model(Range{1000000})`: a number of rows without data, for example for Monte Carlo, ensembles and rays. `forward`
/// receives the `RowRange` of the shard, with the numbers of its rows in the whole batch: that of all processes, with
/// Options::ranks. Outputs and ctx.random() count from the shard's first row. A loop that needs both numbers:
///
///     for (const auto [local, global] : rows.enumerate()) y[local] = trace(global, ctx.random(local));
class Range {
 public:
  /// Throws ShapeMismatch if the number is negative.
  template <std::integral I>
  constexpr explicit Range(I size) : size_(static_cast<std::size_t>(size)) {
    if (std::cmp_less(size, 0)) {
      throw ShapeMismatch(explain({.what = "invalid Range",
                                   .expected = "a number of rows that is not negative",
                                   .found = detail::Text() << size}));
    }
  }

  constexpr std::size_t size() const noexcept { return size_; }

 private:
  std::size_t size_;
};

template <>
struct leaf_traits<Range> {
  using without_axes = void;
  using piece_type = RowRange;
  static std::size_t rows(const Range& range) { return range.size(); }
  static piece_type piece(const Range&, std::size_t begin, std::size_t end) { return {begin, end}; }
};

template <>
struct scatter_traits<Range> : detail::scatter_defaults<Range> {
  static RowRange piece(const Range& range, const ScatterTarget& target, const LeafPath& path) {
    const RowRange rows = detail::scatter_defaults<Range>::piece(range, target, path);
    return {target.first_row + rows.first, target.first_row + rows.last};
  }
};

}}  // namespace fanout::v0
