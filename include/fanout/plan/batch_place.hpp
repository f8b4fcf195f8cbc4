// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Where the shards of a plan stand in a batch that several processes share. Each process has its own plan, which
/// counts from row 0 and shard 0. All zero for a process that is alone.
struct BatchPlace {
  std::size_t first_row;  // not set by default: a call without other processes does not use its own
  std::size_t first_shard;
  std::size_t other_rows;  ///< of the other processes
  std::size_t other_shards;

  /// Rows of the plan as rows of the whole batch.
  constexpr RowRange in_batch(const RowRange& rows) const noexcept {
    return {first_row + rows.first, first_row + rows.last};
  }
};

inline constexpr BatchPlace alone_in_batch{};

}}}  // namespace fanout::v0::detail
