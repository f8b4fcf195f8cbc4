// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/array/strided_view.hpp>
#include <fanout/array/view.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/axis.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

template <class X>
inline constexpr bool is_vector_of_bool = false;
template <class Allocator>
inline constexpr bool is_vector_of_bool<std::vector<bool, Allocator>> = true;

/// How fanout splits its own types and those of the standard library. This one is for types without arrays: every shard
/// receives a reference to the value.
template <class X>
struct scatter_defaults {
  using piece_type = const X&;
  static const X& piece(const X& x, const ScatterTarget&, const LeafPath&) {
    static_assert(!is_vector_of_bool<X>,
                  "fanout: the elements of a std::vector<bool> cannot be pointed to, so it is not split by rows; use a "
                  "std::vector<char> or a Tensor<bool, 1>, or pass broadcast(x)");
    return x;
  }
};

}  // namespace detail

/// How an argument of type X is split. Specialise it for your own type if the type chooses what a shard receives, as
/// broadcast() does:
///
///     using piece_type = ...;
///     static piece_type piece(const X& x, const ScatterTarget& target, const LeafPath& path);
///     static void visit_rows(const X& x, int axis, const LeafPath& path, auto& f);  // only if it has rows
///
/// `piece` makes what the shard `target` receives, on the thread that runs the shard. It borrows x, which outlives the
/// shard. `visit_rows` calls `f(rows, path)` for each array in x that is split. All must have the same number of rows.
/// A type with `visit_rows` must also specialise `splits_itself<X> = true`. `path` names the place in the arguments,
/// for errors. The call throws what these functions throw. The default handles the types that fanout knows. An array
/// that is split by rows needs only `leaf_traits`.
template <class X>
struct scatter_traits : detail::scatter_defaults<X> {};

namespace detail {

template <class X>
concept HasVisitRows = requires {
  &scatter_traits<X>::visit_rows;
}
|| requires { &scatter_traits<X>::template visit_rows<int>; };

template <class X>
using made_piece_t = decltype(scatter_traits<X>::piece(std::declval<const X&>(), std::declval<const ScatterTarget&>(),
                                                       std::declval<const LeafPath&>()));

template <class X>
using declared_piece_t = typename scatter_traits<X>::piece_type;

template <class X>
concept HasPieceType = requires {
  typename declared_piece_t<X>;
};

/// True if `piece` can be called as documented. Only that of a specialisation is checked, to save compile time.
template <class X>
concept MakesPieces = std::is_base_of_v<scatter_defaults<X>, scatter_traits<X>> ||
    std::is_convertible_v<made_piece_t<X>, declared_piece_t<X>>;

/// Stands for the `f` of a visit_rows.
struct AnyRowsVisitor {
  template <class Rows>
  void operator()(const Rows&, const LeafPath&) {}
};

template <class X>
concept VisitsRows = requires(const X& x, const LeafPath& path, AnyRowsVisitor& f) {
  scatter_traits<X>::visit_rows(x, 0, path, f);
};

/// Refuses a specialisation of scatter_traits that lacks something. Returns false then. The static_asserts are not in a
/// class: clang calls a class invalid whose static_assert fails, and all classes that use it.
template <class X>
constexpr bool check_scatter_traits() {
  constexpr bool has_type = HasPieceType<X>;
  constexpr bool has_piece = has_type && MakesPieces<X>;
  constexpr bool has_rows = !splits_itself<X> || VisitsRows<X>;
  static_assert(has_type,
                "fanout: scatter_traits of this type has no piece_type (this diagnostic shows the type); add `using "
                "piece_type = P;`, where P is what each shard is handed");
  static_assert(!has_type || has_piece,
                "fanout: scatter_traits of this type has no `piece` that fits (this diagnostic shows the type X); add "
                "`static piece_type piece(const X&, const ScatterTarget&, const LeafPath&)`");
  static_assert(!has_piece || has_rows,
                "fanout: splits_itself is true for this type, but its scatter_traits has no `visit_rows` that fits "
                "(this diagnostic shows the type X); add `static void visit_rows(const X&, int axis, const LeafPath& "
                "path, auto& f)`, which calls f(rows, path)");
  static_assert(!has_piece || splits_itself<X> || !HasVisitRows<X>,
                "fanout: scatter_traits of this type has a visit_rows, which nobody calls; specialise splits_itself "
                "for the type, too: `template <> inline constexpr bool fanout::splits_itself<X> = true;`");
  return has_piece && has_rows;
}

/// The type of a piece as far as a scatter_traits that is refused says it, so that no other error follows.
template <class X>
auto assumed_piece() {
  if constexpr (HasPieceType<X>) {
    return std::type_identity<declared_piece_t<X>>();
  } else if constexpr (requires { typename made_piece_t<X>; }) {
    return std::type_identity<made_piece_t<X>>();
  } else {
    return std::type_identity<const X&>();
  }
}

template <class X, bool Complete = check_scatter_traits<X>()>
struct CheckedScatter {
  static constexpr bool is_complete = true;
  using type = scatter_traits<X>;
};
template <class X>
struct CheckedScatter<X, false> {
  static constexpr bool is_complete = false;
  using type = CheckedScatter;
  using piece_type = typename decltype(assumed_piece<X>())::type;
  [[noreturn]] static piece_type piece(const X&, const ScatterTarget&, const LeafPath&) { __builtin_unreachable(); }
};

/// The scatter_traits of an argument, without its reference or const.
template <class X>
using checked_scatter_t = typename CheckedScatter<std::remove_cvref_t<X>>::type;

template <class X>
using piece_t = typename checked_scatter_t<X>::piece_type;

/// Returns the piece of one shard.
template <class X>
decltype(auto) piece_of(const X& x, const ScatterTarget& target, const LeafPath& path) {
  return checked_scatter_t<X>::piece(x, target, path);
}

/// The type that keeps an argument given as `X&&`: a const reference to an lvalue, or the rvalue itself.
template <class X>
using kept_t = std::conditional_t<std::is_lvalue_reference_v<X>, const std::remove_reference_t<X>&, X>;

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

/// True for InOut. `forward` writes such an array in place, so it must not be copied.
template <class X>
inline constexpr bool is_inout = false;

/// False for a type that splits its arrays on another axis, or sends them whole.
template <class X>
inline constexpr bool splits_by_rows = true;

/// True for Sharded, which holds one value per shard.
template <class X>
inline constexpr bool is_sharded = false;

// What the arguments of a call are searched for: see has_inside().
struct WhatIsInout {
  template <class X>
  static constexpr bool found = is_inout<X>;
};
struct WhatIsSharded {
  template <class X>
  static constexpr bool found = is_sharded<X>;
};

/// True if any of the arguments is such a tree, or has one in it.
template <class... Args>
inline constexpr bool has_inout = (has_inside<WhatIsInout, std::remove_cvref_t<Args>>() || ...);
template <class... Args>
inline constexpr bool has_sharded = (has_inside<WhatIsSharded, std::remove_cvref_t<Args>>() || ...);

/// All rows of an array, however many there are.
inline constexpr RowRange all_rows{0, ~std::size_t{0}};

template <ArrayLeaf X>
struct scatter_defaults<X> {
  using piece_type = typename leaf_traits<X>::piece_type;

  static piece_type piece(const X& x, const ScatterTarget& place, const LeafPath& path) {
    if constexpr (Contiguous<X>) {
      if (place.axis != 0) return packed_part(x, place, path);
    }
    if constexpr (is_strided_view<X>) {
      return part_on_axis(piece_type(x), place, path);
    } else if constexpr (SplitsOnAxes<X>) {
      const bool whole = place.rows.last == all_rows.last;
      return leaf_traits<X>::piece_on(place.axis, x, place.rows.first,
                                      whole ? rows_on(x, place.axis, path) : place.rows.last, path);
    } else {
      const std::size_t end = place.rows.last == all_rows.last ? leaf_traits<X>::rows(x) : place.rows.last;
      piece_type piece = leaf_traits<X>::piece(x, place.rows.first, end);
      if constexpr (!WithoutAxes<X> && requires { transferred(piece, place, path); }) {
        return transferred(piece, place, path);
      } else {
        if constexpr (requires { piece.space(); }) {
          check_piece_space(piece.space(), place, path);
        } else if constexpr (is_inout<X>) {
          check_piece_space(host_memory, place, path);
        }
        return piece;
      }
    }
  }
};

/// For visit_arrays(): calls `f(rows, path)` for each array that is split. A part that splits itself reports its own
/// rows.
template <class F>
struct RowsOnAxis {
  int axis;
  F& f;

  template <class X>
  void operator()(const X& x, const LeafPath& path) const {
    if constexpr (ArrayLeaf<X>) {
      f(rows_on(x, axis, path), path);
    } else if constexpr (CheckedScatter<X>::is_complete) {
      scatter_traits<X>::visit_rows(x, axis, path, f);
    }
  }
};

template <class X, class F>
void visit_rows(const X& tree, int axis, const LeafPath& path, F& f) {
  visit_arrays(tree, path, RowsOnAxis<F>{axis, f});
}

}  // namespace detail
}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/scatter/scatter_traits.ipp>
#endif
