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
