// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/split.hpp>

namespace contributing {

/// Shards of so many rows at most, which the devices take in turn: more shards than devices where a whole share of the
/// batch would not fit into a device's memory or cache. Several shards of one device run one after the other.
struct PageSplit {
  std::size_t page;  ///< 0: all rows on one

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
