// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/plan/any_split.hpp>
#include <fanout/plan/chunk_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/weighted_split.hpp>

#include "sharing.hpp"

namespace random_programs {

/// The library's policy that shares rows out in this way.
inline fanout::AnySplit split_of(const Sharing& sharing) {
  switch (sharing.way) {
    case Way::even:
      return {};
    case Way::chunk:
      return fanout::ChunkSplit{};
    case Way::weighted:
      return fanout::WeightedSplit(sharing.weights);
    default:
      return [sharing](std::size_t rows, std::size_t devices) {
        fanout::Plan plan;
        for (const Part& part : parts_of(sharing, rows, devices)) {
          plan.add({.rows = {part.begin, part.end}, .device = part.device});
        }
        return plan;
      };
  }
}

}  // namespace random_programs
