// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Where the shards of a plan stand in a batch that several processes share, or that a pipeline calls in parts. Each
/// part has its own plan, which counts from row 0 and shard 0. All zero for a call of a whole batch.
struct BatchPlace {
  std::size_t first_row;  // not set by default: a call without other processes does not use its own
  std::size_t first_shard;
  std::size_t other_rows;  ///< of the other processes, or parts
  std::size_t other_shards;
  std::size_t first_in_arguments;  ///< the row of the arguments that is row 0 of the plan

  /// Rows of the plan as rows of the whole batch.
  constexpr RowRange in_batch(const RowRange& rows) const noexcept {
    return {first_row + rows.first, first_row + rows.last};
  }
  /// Row 0 of the arguments as a row of the whole batch.
  constexpr std::size_t first_argument() const noexcept { return first_row - first_in_arguments; }
  /// Rows of the plan as rows of the arguments.
  constexpr RowRange in_arguments(const RowRange& rows) const noexcept {
    return {first_in_arguments + rows.first, first_in_arguments + rows.last};
  }
};

inline constexpr BatchPlace alone_in_batch{};

}}}  // namespace fanout::v0::detail
