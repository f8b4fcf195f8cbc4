// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/state_header.hpp>

namespace fanout { inline namespace v0 { namespace detail {

bool count_bytes(Dtype dtype, const std::vector<std::uint64_t>& shape, std::uint64_t& bytes) noexcept {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return false;
  }
  const std::uint64_t bits = row_of(dtype).bits;
  const bool in_bytes = bits % 8 == 0;
  if (__builtin_mul_overflow(count, in_bytes ? bits / 8 : bits, &bytes)) return false;
  if (in_bytes) return true;
  const bool is_whole = bytes % 8 == 0;
  bytes /= 8;
  return is_whole;
}

}}}  // namespace fanout::v0::detail
