// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/plan.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// `rows` rows in `parts` parts, whose sizes differ by at most one row, the larger ones first.
class EvenParts {
 public:
  constexpr EvenParts(std::size_t rows, std::size_t parts) noexcept : each_(rows / parts), larger_(rows % parts) {}

  constexpr RowRange operator[](std::size_t i) const noexcept {
    const std::size_t first = i * each_ + (i < larger_ ? i : larger_);
    return {first, first + each_ + (i < larger_ ? 1 : 0)};
  }

 private:
  std::size_t each_;
  std::size_t larger_;
};

}  // namespace detail

/// The default split policy: the sizes of the shards differ by at most one row, the larger ones first, as in
/// numpy.array_split. 10 rows on 4 devices are split into 3, 3, 2, 2. With fewer rows than devices the surplus devices
/// stay idle. With no rows each device gets an empty shard.
struct EvenSplit {
  /// The plan for `rows` rows. `devices` must be at least 1.
  constexpr Plan operator()(std::size_t rows, std::size_t devices) const {
    const std::size_t shards = rows == 0 || rows > devices ? devices : rows;
    const detail::EvenParts parts(rows, shards);
    return Plan(shards, [&parts](std::size_t i) { return Shard{.rows = parts[i], .device = i}; });
  }
};

}}  // namespace fanout::v0
