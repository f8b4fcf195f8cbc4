// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// How random calls share their rows out, in plain loops. It knows no type of fanout's.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace random_programs {

/// Numbers that depend on the seed alone, whatever the platform.
class Random {
 public:
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }

  explicit Random(std::uint64_t seed) : state_(seed) {}
  result_type operator()() {
    std::uint64_t x = state_ += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>((*this)() % end); }

 private:
  std::uint64_t state_;
};

struct Part {
  std::size_t begin, end, device;

  std::size_t rows() const { return end - begin; }
};
using Parts = std::vector<Part>;

enum class Way : unsigned char { even, chunk, weighted, dealt, cut };

/// How one call shares its rows out.
struct Sharing {
  Way way = Way::even;
  std::vector<std::size_t> weights;
  std::size_t block = 1;   // of `dealt`: rows in one, which the devices take in turn
  std::uint64_t seed = 0;  // of `cut`: anywhere, with empty shards, on any devices
};

/// Any way to share rows out over so many devices.
inline Sharing drawn_sharing(Random& random, std::size_t devices) {
  Sharing sharing;
  sharing.way = static_cast<Way>(random.below(5));
  sharing.block = 1 + random.below(5);
  sharing.seed = random();
  sharing.weights = {1 + random.below(9)};
  while (sharing.weights.size() < devices) sharing.weights.push_back(random.below(5));
  return sharing;
}

/// What each shard gets, by plain loops.
inline Parts parts_of(const Sharing& sharing, std::size_t rows, std::size_t devices) {
  std::vector<std::size_t> sizes;  // of shards, on the devices in order
  Parts parts;
  switch (sharing.way) {
    case Way::even:
      for (std::size_t i = 0; i < devices; ++i) sizes.push_back(rows / devices + (i < rows % devices ? 1 : 0));
      break;
    case Way::chunk: {
      std::size_t left = rows;
      for (std::size_t i = 0; i < devices; ++i) {
        sizes.push_back(std::min(left, (rows + devices - 1) / devices));
        left -= sizes.back();
      }
      break;
    }
    case Way::weighted: {
      const std::size_t sum = std::accumulate(sharing.weights.begin(), sharing.weights.end(), std::size_t{0});
      std::vector<std::size_t> order;
      std::size_t left = rows;
      for (std::size_t i = 0; i < devices; ++i) {
        sizes.push_back(rows * sharing.weights[i] / sum);
        left -= sizes.back();
        order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return rows * sharing.weights[a] % sum > rows * sharing.weights[b] % sum;
      });
      for (std::size_t i = 0; i < left; ++i) ++sizes[order[i]];
      break;
    }
    case Way::dealt:
      for (std::size_t begin = 0; begin < rows; begin += sharing.block) {
        parts.push_back({begin, std::min(begin + sharing.block, rows), parts.size() % devices});
      }
      if (rows == 0) parts.push_back({0, 0, 0});
      return parts;
    case Way::cut: {
      Random random(sharing.seed + rows);
      std::vector<std::size_t> cuts{0, rows};
      for (std::size_t i = random.below(20); i > 0; --i) cuts.push_back(random.below(rows + 1));
      std::sort(cuts.begin(), cuts.end());
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i) parts.push_back({cuts[i], cuts[i + 1], random.below(devices)});
      return parts;
    }
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < devices; ++i) {
    const bool idle = rows != 0 ? sizes[i] == 0 : sharing.way == Way::weighted && sharing.weights[i] == 0;
    if (!idle) parts.push_back({begin, begin + sizes[i], i});
    begin += sizes[i];
  }
  return parts;
}

}  // namespace random_programs
