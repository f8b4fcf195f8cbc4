// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <fanout/plan/split.hpp>

namespace fanout_test {

using Random = std::mt19937;

inline std::size_t below(Random& random, std::size_t end) { return random() % end; }

/// Any valid plan: any number of shards, empty ones too, on any devices, more than one to a device.
struct RandomSplit {
  std::uint32_t seed;

  fanout::Plan operator()(std::size_t rows, std::size_t devices) const {
    Random random(seed + static_cast<std::uint32_t>(rows));
    std::vector<std::size_t> cuts{0, rows};
    for (std::size_t i = below(random, 12); i > 0; --i) cuts.push_back(below(random, rows + 1));
    std::sort(cuts.begin(), cuts.end());
    fanout::Plan plan;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      plan.add({.rows = {cuts[i], cuts[i + 1]}, .device = below(random, devices)});
    }
    return plan;
  }
};

}  // namespace fanout_test
