// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/scatter/array_pieces.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 { namespace detail {

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

}}}  // namespace fanout::v0::detail
