// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/row_range.hpp>

namespace fanout { inline namespace v0 {

/// For which shard arguments are split, and where its pieces may stand.
struct ScatterTarget {
  std::size_t shard = 0;  ///< its position in the plan
  RowRange rows = {};
  backend::Memory memory = {};         ///< of the device that runs it
  detail::Scratch* scratch = nullptr;  ///< where what has to be packed is put; without it, that cannot be split
  int axis = 0;                        ///< on which arrays are split; counted from the last one if negative

  ScatterTarget on_axis(int other) const noexcept {
    ScatterTarget place = *this;
    place.axis = other;
    return place;
  }
};

}}  // namespace fanout::v0
