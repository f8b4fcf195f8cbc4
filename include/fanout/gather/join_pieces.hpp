// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/tensor.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/dispatch/shared_copy.hpp>
#include <fanout/gather/gather_target.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/memory/copy_rows.hpp>
#include <fanout/memory/extents.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/storage.hpp>
#include <fanout/memory/transfer.hpp>

namespace fanout { inline namespace v0 {

// Copies the pieces of arrays into one result.

namespace detail {

/// Makes the array that a result is gathered to, uninitialised: in memory of the caller that it fits, otherwise in new
/// memory.
template <class T, std::size_t R>
Tensor<T, R> make_result(const Extents<R>& extents, const GatherTarget& place) {
  if (place.outputs != nullptr) {
    Storage target = place.outputs->take_target(extents[0], extents.row_size() * sizeof(T));
    if (target.data() != nullptr) return Tensor<T, R>(std::move(target), extents);
  }
  return Tensor<T, R>::uninitialized(extents, place.target);
}

/// The bytes of one piece, and their memory.
struct PieceBytes {
  const void* data;
  MemorySpace space;
  std::size_t bytes;
};

template <class T, std::size_t R, class X>
InlineArray<PieceBytes> bytes_of(const ShardResults<X>& pieces) {
  return InlineArray<PieceBytes>(pieces.size(), [&](std::size_t i) -> PieceBytes {
    const View<const T, R> piece(pieces[i]);
    return {piece.data(), piece.space(), piece.size() * sizeof(T)};
  });
}

/// Puts all pieces into one memory. Copies those that are elsewhere, from different devices at the same time. `pieces`
/// then name the copies, which this owns. Throws OutOfMemory, and what backend::transfer() throws.
class MovedPieces {
 public:
  FANOUT_INLINE MovedPieces(InlineArray<PieceBytes>& pieces, const backend::Memory& memory);

 private:
  InlineArray<Storage> copies_;
};

/// Writes the pieces to the result one after the other, from any memory. If the result is in host memory, consecutive
/// pieces in host memory are one copy, which can be shared. Pieces of different devices are copied at the same time.
FANOUT_INLINE void join_pieces(void* to, const InlineArray<PieceBytes>& pieces, const GatherTarget& place);

/// Interleaves the pieces in the result: each of its rows has one run of each piece. A piece in another memory is moved
/// whole, not run by run.
FANOUT_INLINE void join_runs(void* to, std::size_t rows, InlineArray<PieceBytes> pieces, const GatherTarget& place);

/// Packs a piece into the result. Both must be in the same memory.
template <class T, std::size_t R>
void pack_piece(std::remove_cv_t<T>* to, const StridedView<T, R>& piece, const GatherTarget& place) {
  if (piece.empty()) return;
  const StridedRuns<R> runs(piece);
  if (!(place.target.space == host_memory) || runs.outer != 0) return pack(*place.target.operations, to, piece);
  const RowPart part{reinterpret_cast<const std::byte*>(piece.data()), runs.pitch * sizeof(T), runs.run * sizeof(T)};
  copy_shared(RowsCopy{reinterpret_cast<std::byte*>(to), runs.rows, &part, 1, part.bytes}, place.team);
}

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/gather/join_pieces.ipp>
#endif
