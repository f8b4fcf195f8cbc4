// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/join_pieces.hpp>

#include <cstddef>

#include <fanout/dispatch/shared_copy.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline std::size_t count_elsewhere(const InlineArray<PieceBytes>& pieces, const MemorySpace& space) noexcept {
  std::size_t count = 0;
  for (const PieceBytes& piece : pieces) count += piece.space == space ? 0U : 1U;
  return count;
}

MovedPieces::MovedPieces(InlineArray<PieceBytes>& pieces, const backend::Memory& memory)
    : copies_(count_elsewhere(pieces, memory.space)) {
  if (copies_.size() == 0) return;
  InlineArray<backend::Transfer> transfers(copies_.size());
  std::size_t next = 0;
  for (std::size_t i = 0; next < copies_.size(); ++i) {
    if (pieces[i].space == memory.space) continue;
    copies_[next] = Storage(memory, pieces[i].bytes);
    transfers[next] = {copies_[next].data(), pieces[i].space, pieces[i].data, pieces[i].bytes};
    pieces[i] = {copies_[next].data(), memory.space, pieces[i].bytes};
    ++next;
  }
  backend::transfer_all(memory, transfers.data(), transfers.size());
}

void join_pieces(void* to, const InlineArray<PieceBytes>& pieces, const GatherTarget& place) {
  auto* at = static_cast<std::byte*>(to);
  const auto is_here = [&](std::size_t i) {
    return pieces[i].space == host_memory && place.target.space == host_memory;
  };
  std::size_t elsewhere = 0;
  const InlineArray<RowPart> parts(pieces.size(), [&](std::size_t i) -> RowPart {
    elsewhere += is_here(i) ? 0U : 1U;
    return {static_cast<const std::byte*>(pieces[i].data), pieces[i].bytes, pieces[i].bytes};
  });
  InlineArray<backend::Transfer> transfers(elsewhere);
  backend::Transfer* next = transfers.data();
  for (std::size_t i = 0; i < pieces.size();) {
    std::size_t bytes = 0;
    const std::size_t first = i;
    for (; i < pieces.size() && is_here(i); ++i) bytes += pieces[i].bytes;
    if (i == first) {
      bytes = pieces[i].bytes;
      *next++ = {at, pieces[i].space, pieces[i].data, bytes};
      ++i;
    } else {
      copy_shared(RowsCopy{at, 1, parts.data() + first, i - first, bytes}, place.team);
    }
    at += bytes;
  }
  backend::transfer_all(place.target, transfers.data(), elsewhere);
}

void join_runs(void* to, std::size_t rows, InlineArray<PieceBytes> pieces, const GatherTarget& place) {
  if (rows == 0) return;
  const MovedPieces here(pieces, place.target);
  auto* at = static_cast<std::byte*>(to);
  std::size_t row_bytes = 0;
  const InlineArray<RowPart> parts(pieces.size(), [&](std::size_t i) -> RowPart {
    const std::size_t run = pieces[i].bytes / rows;
    row_bytes += run;
    return {static_cast<const std::byte*>(pieces[i].data), run, run};
  });
  if (place.target.space == host_memory)
    return copy_shared(RowsCopy{at, rows, parts.data(), parts.size(), row_bytes}, place.team);
  for (std::size_t row = 0; row < rows; ++row) {
    for (const RowPart& part : parts) {
      place.target.operations->copy(place.target.space, at, part.from + row * part.bytes, part.bytes);
      at += part.bytes;
    }
  }
}

}}}  // namespace fanout::v0::detail
