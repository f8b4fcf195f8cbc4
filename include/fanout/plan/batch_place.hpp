// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Where the shards of a plan stand in a batch that several processes share. Each process has its own plan, which
/// counts from row 0 and shard 0. All zero for a process that is alone.
struct BatchPlace {
  std::size_t first_row = 0;
  std::size_t first_shard = 0;
  std::size_t other_rows = 0;  ///< of the other processes
  std::size_t other_shards = 0;

  /// Rows of the plan as rows of the whole batch.
  constexpr RowRange in_batch(const RowRange& rows) const noexcept {
    return {first_row + rows.first, first_row + rows.last};
  }
};

inline constexpr BatchPlace alone_in_batch;

}}}  // namespace fanout::v0::detail
