// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace fanout::inline v0::detail {

/// A copy of so many bytes or more is streamed: written past the caches. What does not fit there would be read from
/// memory before it is overwritten, which costs up to half of the bandwidth; what fits is wanted there by who reads it
/// next.
inline constexpr std::size_t streamed_from = std::size_t{1} << 21;

#if defined(__SSE2__)

/// The distance of the four places that a streamed copy goes on at in turn: so many pages are read ahead at once, and
/// so many banks of memory are busy.
inline constexpr std::size_t stream_distance = 4096;

inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  auto* const target = reinterpret_cast<__m128i*>(to);
  const auto* const source = reinterpret_cast<const __m128i*>(from);
  const __m128i a = _mm_loadu_si128(source);
  const __m128i b = _mm_loadu_si128(source + 1);
  const __m128i c = _mm_loadu_si128(source + 2);
  const __m128i d = _mm_loadu_si128(source + 3);
  _mm_stream_si128(target, a);
  _mm_stream_si128(target + 1, b);
  _mm_stream_si128(target + 2, c);
  _mm_stream_si128(target + 3, d);
}

/// memcpy() past the caches. Other threads see it after settle_streams().
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

/// Streamed bytes are written before what this thread writes afterwards.
inline void settle_streams() noexcept { _mm_sfence(); }

#else

inline void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
inline void settle_streams() noexcept {}

#endif

/// memcpy(), streamed where there is much. Addresses may be null where there are no bytes.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes >= streamed_from) {
    stream_bytes(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    settle_streams();
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace fanout::inline v0::detail
