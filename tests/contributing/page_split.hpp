// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/split.hpp>

namespace contributing {

/// Shards of at most `page` rows, which the devices take in turn. So a device may have several shards, which run one
/// after the other: useful if a device's whole share of the batch does not fit into its memory or cache.
struct PageSplit {
  std::size_t page;  ///< 0: all rows on one device

  constexpr fanout::Plan operator()(std::size_t rows, std::size_t devices) const {
    fanout::Plan plan;
    for (std::size_t begin = 0; begin < rows;) {
      const std::size_t end = page != 0 && page < rows - begin ? begin + page : rows;
      plan.add({.rows = {begin, end}, .device = plan.size() % devices});
      begin = end;
    }
    // Requirement 3 of Split: without rows every device gets an empty shard.
    for (std::size_t i = 0; rows == 0 && i < devices; ++i) plan.add({.rows = {}, .device = i});
    return plan;
  }
};
static_assert(fanout::Split<PageSplit>);

}  // namespace contributing
