// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/scatter/axis.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// An array whose elements are contiguous, so that it can be split on any axis.
template <class X>
concept Contiguous = ArrayLeaf<X> && requires(const X& x) {
  x.extents();
  requires std::convertible_to<const X&, View<const typename X::value_type, X::rank>>;
  requires std::same_as<typename leaf_traits<X>::piece_type, View<const typename X::value_type, X::rank>>;
};
template <class X>
inline constexpr bool is_strided_view = false;
template <class T, std::size_t R>
inline constexpr bool is_strided_view<StridedView<T, R>> = true;

/// True for a leaf that has rows but no axes, for example Range and rows(v). It has the same rows on every axis.
template <class X>
concept WithoutAxes = requires {
  typename leaf_traits<X>::without_axes;
};

/// A leaf whose traits can split it on every axis.
template <class X>
concept SplitsOnAxes = ArrayLeaf<X> && requires(const X& x, const LeafPath& path) {
  { leaf_traits<X>::rows_on(0, x, path) } -> std::same_as<std::size_t>;
  leaf_traits<X>::piece_on(0, x, std::size_t{}, std::size_t{}, path);
};

/// Returns the extent of an array on an axis. Throws ShapeMismatch if the array cannot be split on it.
template <ArrayLeaf X>
std::size_t rows_on(const X& x, int axis, const LeafPath& path) {
  if constexpr (Contiguous<X> || is_strided_view<X>) {
    return x.extents()[axis == 0 ? 0 : backend::checked_axis(axis, X::rank, path)];
  } else if constexpr (SplitsOnAxes<X>) {
    return leaf_traits<X>::rows_on(axis, x, path);
  } else {
    if constexpr (!WithoutAxes<X>) {
      if (axis != 0) refuse_axis(axis, path);
    }
    return leaf_traits<X>::rows(x);
  }
}

[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_piece(const MemorySpace& found, const ScatterTarget& place,
                                                        const LeafPath& path);

inline void check_piece_space(const MemorySpace& found, const ScatterTarget& place, const LeafPath& path) {
  if (!(found == place.memory.space)) refuse_piece(found, place, path);
}

/// Returns the scratch, which lives as long as the shard's pieces. Throws InvalidArgument if there is none.
FANOUT_INLINE Scratch& scratch_for(const ScatterTarget& place, const LeafPath& path);

/// Copies `size` elements into the shard's memory. Null if there are none. Throws DeviceMismatch if there is no
/// transfer between the memories.
template <class T>
const T* moved_elements(const MemorySpace& from, const T* data, std::size_t size, const ScatterTarget& place,
                        const LeafPath& path) {
  if (!backend::can_transfer(place.memory, from)) refuse_piece(from, place, path);
  if (size == 0) return nullptr;
  Scratch& scratch = scratch_for(place, path);
  const std::size_t bytes = size * sizeof(T);
  const backend::Memory memory = Scratch::in(place.memory);
  return static_cast<const T*>(scratch.keep_bytes(Storage(
      {memory.space, memory.operations->fresh}, backend::transfer_in(memory, from, data, bytes), bytes, nullptr)));
}

template <class T, std::size_t R>
[[gnu::noinline]] View<const T, R> moved_piece(const View<const T, R>& piece, const ScatterTarget& place,
                                               const LeafPath& path) {
  return {moved_elements(piece.space(), piece.data(), piece.size(), place, path), piece.extents(), place.memory.space};
}

/// Returns the piece itself if it is in the shard's memory, otherwise a copy there. A span is in host memory. It stays
/// there if its elements are not trivially copyable.
template <class T, std::size_t R>
inline View<const T, R> transferred(const View<const T, R>& piece, const ScatterTarget& place, const LeafPath& path) {
  return piece.space() == place.memory.space ? piece : moved_piece(piece, place, path);
}
template <class T>
inline std::span<const T> transferred(const std::span<const T>& piece, const ScatterTarget& place,
                                      const LeafPath& path) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (!(place.memory.space == host_memory)) {
      return {moved_elements(host_memory, piece.data(), piece.size(), place, path), piece.size()};
    }
  }
  return piece;
}

/// Returns a part of an array as a View in the shard's memory: in place if it is contiguous and already there,
/// otherwise a copy in the shard's scratch.
template <class T, std::size_t R>
View<const T, R> packed(const StridedView<const T, R>& part, const ScatterTarget& place, const LeafPath& path) {
  if (part.is_contiguous())
    return transferred(View<const T, R>(part.data(), part.extents(), part.space()), place, path);
  backend::Memory memory = place.memory;
  if (!(part.space() == memory.space)) {
    if (!backend::can_transfer(memory, part.space())) refuse_piece(part.space(), place, path);
    memory = backend::memory_of(part.space());  // packed where it is, then one transfer
  }
  T* const to = static_cast<T*>(scratch_for(place, path).allocate(memory, part.size() * sizeof(T)));
  pack(*memory.operations, to, part);
  return transferred(View<const T, R>(to, part.extents(), part.space()), place, path);
}

/// Returns the shard's part of an array, on the axis of `place`. It is in place if it is in the shard's memory,
/// otherwise a packed copy.
template <class T, std::size_t R>
StridedView<const T, R> part_on_axis(const StridedView<const T, R>& x, const ScatterTarget& place,
                                     const LeafPath& path) {
  const StridedView<const T, R> part = x.slice(backend::checked_axis(place.axis, R, path), place.rows);
  if (part.space() == place.memory.space) return part;
  return StridedView<const T, R>(packed(part, place, path));
}
template <Contiguous X>
StridedView<const typename X::value_type, X::rank> strided_part(const X& x, const ScatterTarget& place,
                                                                const LeafPath& path) {
  using T = typename X::value_type;
  return part_on_axis(StridedView<const T, X::rank>(View<const T, X::rank>(x)), place, path);
}

template <Contiguous X>
[[gnu::noinline]] View<const typename X::value_type, X::rank> packed_part(const X& x, const ScatterTarget& place,
                                                                          const LeafPath& path) {
  return packed(strided_part(x, place, path), place, path);
}

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/scatter/array_pieces.ipp>
#endif
