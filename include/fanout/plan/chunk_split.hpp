// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

/// The rule of PyTorch's `torch.chunk`: shards of ceil(rows / devices) rows, and a last one with the rest. So there may
/// be fewer shards than devices although there are more rows. The surplus devices stay idle: 9 rows on 8 devices are
/// split into 2, 2, 2, 2,
/// 1. With no rows each device gets an empty shard.
struct ChunkSplit {
  /// The plan for `rows` rows. `devices` must be at least 1.
  constexpr Plan operator()(std::size_t rows, std::size_t devices) const {
    Plan plan;
    const std::size_t size = rows / devices + (rows % devices != 0 ? 1 : 0);
    std::size_t begin = 0;
    for (std::size_t i = 0; i < devices && (begin < rows || rows == 0); ++i) {
      const std::size_t end = rows - begin > size ? begin + size : rows;
      plan.add({.rows = {begin, end}, .device = i});
      begin = end;
    }
    return plan;
  }
};

}}  // namespace fanout::v0
