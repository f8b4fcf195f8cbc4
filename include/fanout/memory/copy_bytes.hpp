// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fanout { inline namespace v0 { namespace detail {

/// A copy of this many bytes or more is streamed: its stores bypass the caches. A target that does not fit into the
/// caches would be read from memory before it is overwritten, which costs up to half of the bandwidth. A target that
/// fits should stay in the caches for its next reader.
inline constexpr std::size_t streamed_from = std::size_t{1} << 21;

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

/// Copies bytes with stores that bypass the caches. Other threads see them after settle_streams().
inline void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
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

/// Orders streamed bytes before all later writes of this thread.
inline void settle_streams() noexcept { __builtin_ia32_sfence(); }

#else

inline void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
inline void settle_streams() noexcept {}

#endif

/// memcpy(), streamed from `streamed_from` bytes on. The addresses may be null if there are no bytes.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes >= streamed_from) {
    stream_bytes(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    settle_streams();
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}}}  // namespace fanout::v0::detail
