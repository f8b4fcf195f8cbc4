// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>

namespace fanout { inline namespace v0 {

/// The default split policy: the sizes of the shards differ by at most one row, the larger ones first, as in
/// numpy.array_split. 10 rows on 4 devices are split into 3, 3, 2, 2. With fewer rows than devices the surplus devices
/// stay idle. With no rows each device gets an empty shard.
struct EvenSplit {
  /// The plan for `rows` rows. `devices` must be at least 1.
  constexpr Plan operator()(std::size_t rows, std::size_t devices) const {
    const std::size_t shards = rows == 0 || rows > devices ? devices : rows;
    const std::size_t size = rows / shards;
    const std::size_t larger = rows % shards;
    std::size_t end = 0;
    return Plan(shards, [&](std::size_t i) {
      const std::size_t begin = end;
      end += size + (i < larger ? 1 : 0);
      return Shard{.rows = {begin, end}, .device = i};
    });
  }
};

}}  // namespace fanout::v0
