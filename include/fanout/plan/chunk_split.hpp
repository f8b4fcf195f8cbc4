// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

/// PyTorch's rule (`torch.chunk`): shards of ceil(rows / devices) rows, and a last one of what remains. So there may be
/// fewer shards than devices even where there are more rows, and the surplus devices stay idle: 9 rows on 8 devices are
/// shared out as 2, 2, 2, 2, 1. With no rows each device gets an empty shard.
struct ChunkSplit {
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
static_assert(Split<ChunkSplit>);

}}  // namespace fanout::v0
