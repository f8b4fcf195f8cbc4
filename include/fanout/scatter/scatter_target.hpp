// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// The shard that arguments are split for, and the memory for its pieces.
struct ScatterTarget {
  std::size_t shard = 0;  ///< its position in the plan
  RowRange rows = {};
  backend::Memory memory = {};         ///< of the device that runs the shard
  detail::Scratch* scratch = nullptr;  ///< for pieces that are packed or copied; if null, such pieces are refused
  int axis = 0;                        ///< on which arrays are split; a negative one counts from the end
  std::size_t first_row = 0;           ///< that of `rows` 0 in the batch of all processes that make the call

  ScatterTarget on_axis(int other) const noexcept {
    ScatterTarget place = *this;
    place.axis = other;
    return place;
  }
};

}}  // namespace fanout::v0
