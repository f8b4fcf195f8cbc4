// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/array_pieces.hpp>
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

/// The type that keeps an argument given as `X&&`: a const reference to an lvalue, or the rvalue itself.
template <class X>
using kept_t = std::conditional_t<std::is_lvalue_reference_v<X>, const std::remove_reference_t<X>&, X>;

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

}  // namespace detail
}}  // namespace fanout::v0
