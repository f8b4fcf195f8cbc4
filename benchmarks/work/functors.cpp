// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fanout/context/random_stream.hpp>

#include <work/functors.hpp>

namespace benchmarks {

void sweep_rows(const float* now, float* next, std::size_t size, std::size_t begin, std::size_t end) noexcept {
  for (std::size_t row = std::max<std::size_t>(begin, 1); row < std::min(end, size - 1); ++row) {
    const float* const above = now + (row - 1) * size;
    const float* const here = now + row * size;
    const float* const below = now + (row + 1) * size;
    float* __restrict const to = next + row * size;
    for (std::size_t column = 1; column < size - 1; ++column) {
      to[column] = 0.25F * ((above[column] + below[column]) + (here[column - 1] + here[column + 1]));
    }
  }
}

std::uint64_t count_hits(std::uint64_t begin, std::uint64_t end) noexcept {
  std::uint64_t hits = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    std::uint32_t words[4] = {0, 0, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32U)};
    fanout::detail::philox(words, 2026, 11);
    const auto is_hit = [](std::uint32_t first, std::uint32_t second) {
      const float x = static_cast<float>(first >> 8U) * 0x1p-24F;
      const float y = static_cast<float>(second >> 8U) * 0x1p-24F;
      return x * x + y * y < 1 ? 1U : 0U;
    };
    hits += is_hit(words[0], words[1]) + is_hit(words[2], words[3]);
  }
  return hits;
}

}  // namespace benchmarks
