// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// Blocks of memory that are kept for later are of few sizes, four between one power of two and the next, so that a
/// block is less than a quarter larger than what is asked for.
struct SizeClass {
  std::size_t index;  ///< counted from that of the smallest blocks
  std::size_t bytes;  ///< of its blocks, a multiple of the smallest
};

/// The smallest blocks: a cache line, so that no two blocks share one.
inline constexpr std::size_t smallest_block = 64;

/// The class of the blocks that take so many bytes, at most 2^63 of them.
constexpr SizeClass size_class(std::size_t bytes) noexcept {
  const std::size_t last = bytes - (bytes != 0 ? 1 : 0);
  // Blocks of up to 512 bytes are steps of the smallest one.
  const std::size_t octave = 63U ^ static_cast<unsigned>(__builtin_clzll(last | 256));
  const std::size_t steps = last >> (octave - 2);
  return {.index = (octave - 8) * 4 + steps, .bytes = (steps + 1) << (octave - 2)};
}

/// What blocks of this class have.
constexpr std::size_t class_bytes(std::size_t index) noexcept {
  return index < 4 ? (index + 1) * smallest_block : (index % 4 + 5) << (index / 4 + 5);
}

}}}  // namespace fanout::v0::detail
