// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// The size class of a cached block. There are four sizes between one power of two and the next. So a block is less
/// than a quarter larger than the bytes asked for.
struct SizeClass {
  std::size_t index;  ///< 0 for the smallest blocks
  std::size_t bytes;  ///< the size of its blocks, a multiple of the smallest one
};

/// The size of the smallest blocks: a cache line, so that no two blocks share one.
inline constexpr std::size_t smallest_block = 64;

/// The size class of blocks for so many bytes, at most 2^63.
constexpr SizeClass size_class(std::size_t bytes) noexcept {
  const std::size_t last = bytes - (bytes != 0 ? 1 : 0);
  // Up to 512 bytes, sizes are multiples of the smallest one.
  const std::size_t octave = 63U ^ static_cast<unsigned>(__builtin_clzll(last | 256));
  const std::size_t steps = last >> (octave - 2);
  return {.index = (octave - 8) * 4 + steps, .bytes = (steps + 1) << (octave - 2)};
}

/// The size of the blocks of this class, in bytes.
constexpr std::size_t class_bytes(std::size_t index) noexcept {
  return index < 4 ? (index + 1) * smallest_block : (index % 4 + 5) << (index / 4 + 5);
}

}}}  // namespace fanout::v0::detail
