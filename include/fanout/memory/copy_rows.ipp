// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/copy_rows.hpp>

#include <cstddef>
#include <cstring>

#include <fanout/memory/copy_bytes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

template <std::size_t Bytes>
void copy_runs_of(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(to + i * to_pitch, from + i * from_pitch, Bytes);
}

/// Copies `count` runs of `bytes` bytes each. A call of memcpy() would cost more than a short run itself.
inline void copy_runs(std::byte* to, std::size_t to_pitch, const std::byte* from, std::size_t from_pitch,
                      std::size_t bytes, std::size_t count) noexcept {
  switch (bytes) {
    case 1:
      return copy_runs_of<1>(to, to_pitch, from, from_pitch, count);
    case 2:
      return copy_runs_of<2>(to, to_pitch, from, from_pitch, count);
    case 4:
      return copy_runs_of<4>(to, to_pitch, from, from_pitch, count);
    case 8:
      return copy_runs_of<8>(to, to_pitch, from, from_pitch, count);
    case 12:
      return copy_runs_of<12>(to, to_pitch, from, from_pitch, count);
    case 16:
      return copy_runs_of<16>(to, to_pitch, from, from_pitch, count);
    default:
      break;
  }
  for (std::size_t i = 0; i < count; ++i, to += to_pitch, from += from_pitch) {
    if (bytes < 16 || bytes > 256) {
      std::memcpy(to, from, bytes);
    } else {  // the last 16 bytes may be copied twice
      for (std::size_t at = 0; at + 16 < bytes; at += 16) std::memcpy(to + at, from + at, 16);
      std::memcpy(to + bytes - 16, from + bytes - 16, 16);
    }
  }
}

/// Copies bytes [begin, end) of one row.
inline void copy_within_row(const RowsCopy& copy, std::size_t row, std::size_t begin, std::size_t end,
                            bool streamed) noexcept {
  std::byte* const to = copy.to + row * copy.row_bytes;
  std::size_t first = 0;  // offset of the part in the row
  for (const RowPart* part = copy.parts; part != copy.parts + copy.count && first < end; ++part) {
    const std::size_t last = first + part->bytes;
    const std::size_t from = begin > first ? begin : first;
    const std::size_t until = end < last ? end : last;
    if (from < until) {
      const std::byte* const source = part->from + row * part->pitch + (from - first);
      streamed ? stream_bytes(to + from, source, until - from)
               : static_cast<void>(std::memcpy(to + from, source, until - from));
    }
    first = last;
  }
}

inline void copy_whole_rows(const RowsCopy& copy, std::size_t row, std::size_t count, bool streamed) noexcept {
  // Short rows are put together in a block that stays in the nearest cache, so that whole lines are streamed.
  constexpr std::size_t block = std::size_t{1} << 15;
  if (copy.row_bytes > block / 4) {
    for (; count > 0; --count, ++row) copy_within_row(copy, row, 0, copy.row_bytes, streamed);
    return;
  }
  alignas(64) std::byte staged[block];
  const std::size_t most = block / copy.row_bytes;
  while (count > 0) {
    const std::size_t rows = count < most ? count : most;
    std::byte* const to = copy.to + row * copy.row_bytes;
    std::byte* at = streamed ? staged : to;
    for (const RowPart* part = copy.parts; part != copy.parts + copy.count; at += part->bytes, ++part) {
      if (part->bytes == 0) continue;
      copy_runs(at, copy.row_bytes, part->from + row * part->pitch, part->pitch, part->bytes, rows);
    }
    if (streamed) stream_bytes(to, staged, rows * copy.row_bytes);
    row += rows;
    count -= rows;
  }
}

void copy_part(const RowsCopy& copy, std::size_t begin, std::size_t end, bool streamed) noexcept {
  while (begin < end) {
    const std::size_t row = begin / copy.row_bytes;
    const std::size_t at = begin % copy.row_bytes;
    if (at != 0 || end - begin < copy.row_bytes) {
      const std::size_t until = copy.row_bytes - at < end - begin ? copy.row_bytes : at + (end - begin);
      copy_within_row(copy, row, at, until, streamed);
      begin += until - at;
    } else {
      const std::size_t rows = (end - begin) / copy.row_bytes;
      copy_whole_rows(copy, row, rows, streamed);
      begin += rows * copy.row_bytes;
    }
  }
  if (streamed) settle_streams();
}

void copy_rows(const RowsCopy& copy) noexcept { copy_part(copy, 0, copy.bytes(), copy.bytes() >= streamed_from); }

}}}  // namespace fanout::v0::detail
