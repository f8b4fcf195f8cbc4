// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// An argument that is some rows of a tree. Borrows it.
template <class X>
struct PartOf {
  const X& whole;
  RowRange rows;
};

template <class X>
inline constexpr bool wraps_tree<PartOf<X>> = true;

}  // namespace detail

template <class X>
inline constexpr bool splits_itself<detail::PartOf<X>> = true;

template <class X>
struct scatter_traits<detail::PartOf<X>> {
  using piece_type = detail::piece_t<const X&>;
  static piece_type piece(const detail::PartOf<X>& part, const ScatterTarget& target, const LeafPath& path) {
    ScatterTarget there = target;
    there.rows = {part.rows.first + target.rows.first, part.rows.first + target.rows.last};
    there.first_row = target.first_row - part.rows.first;
    return scatter_traits<X>::piece(part.whole, there, path);
  }
  static void visit_rows(const detail::PartOf<X>& part, int, const LeafPath& path, auto& f) {
    f(part.rows.size(), path);
  }
};

}}  // namespace fanout::v0
