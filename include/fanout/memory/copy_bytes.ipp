// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fanout { inline namespace v0 { namespace detail {

#if defined(__SSE2__)

/// The distance in bytes between the four places that a streamed copy writes in turn. So four pages are read ahead at
/// once, and four banks of memory are busy.
inline constexpr std::size_t stream_distance = 4096;

// The compilers' own operations: <emmintrin.h> costs more to include than all of this folder.
using StreamWord [[gnu::vector_size(16), gnu::may_alias]] = long long;

inline void stream_word(std::byte* to, const StreamWord& word) noexcept {
  auto* const target = static_cast<StreamWord*>(static_cast<void*>(to));
#if defined(__clang__)
  __builtin_nontemporal_store(word, target);
#else
  __builtin_ia32_movntdq(target, word);
#endif
}

inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  StreamWord a;
  StreamWord b;
  StreamWord c;
  StreamWord d;
  std::memcpy(&a, from, 16);
  std::memcpy(&b, from + 16, 16);
  std::memcpy(&c, from + 32, 16);
  std::memcpy(&d, from + 48, 16);
  stream_word(to, a);
  stream_word(to + 16, b);
  stream_word(to + 32, c);
  stream_word(to + 48, d);
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  if (bytes < head + 64) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    return;
  }
  if (head != 0) std::memcpy(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  while (bytes >= 256) {
    const std::size_t quarter = bytes / 256 * 64;
    const std::size_t distance = quarter < stream_distance ? quarter : stream_distance;
    for (std::size_t i = 0; i < distance; i += 64) {
      stream_line(to + i, from + i);
      stream_line(to + distance + i, from + distance + i);
      stream_line(to + 2 * distance + i, from + 2 * distance + i);
      stream_line(to + 3 * distance + i, from + 3 * distance + i);
    }
    to += 4 * distance;
    from += 4 * distance;
    bytes -= 4 * distance;
  }
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) stream_line(to, from);
  if (bytes != 0) std::memcpy(to, from, bytes);
}

void settle_streams() noexcept { __builtin_ia32_sfence(); }

#else

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
void settle_streams() noexcept {}

#endif

}}}  // namespace fanout::v0::detail
