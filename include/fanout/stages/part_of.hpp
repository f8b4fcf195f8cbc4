// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/row_range.hpp>
#include <fanout/scatter/checked_scatter.hpp>
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

/// The same, but each shard takes all of these rows.
template <class X>
struct PartForEach {
  const X& whole;
  RowRange rows;
};

template <class X>
inline constexpr bool wraps_tree<PartOf<X>> = true;
template <class X>
inline constexpr bool wraps_tree<PartForEach<X>> = true;

}  // namespace detail

template <class X>
inline constexpr bool splits_itself<detail::PartOf<X>> = true;
template <class X>
inline constexpr bool splits_itself<detail::PartForEach<X>> = true;

namespace detail {

template <class X>
struct scatter_defaults<PartOf<X>> {
  using piece_type = piece_t<const X&>;

  static piece_type piece(const PartOf<X>& part, const ScatterTarget& target, const LeafPath& path) {
    ScatterTarget there = target;
    there.rows = {part.rows.first + target.rows.first, part.rows.first + target.rows.last};
    there.first_row = target.first_row - part.rows.first;
    return scatter_traits<X>::piece(part.whole, there, path);
  }
  template <class F>
  static void visit_rows(const PartOf<X>& part, int, const LeafPath& path, F& f) {
    f(part.rows.size(), path);
  }
};

template <class X>
struct scatter_defaults<PartForEach<X>> {
  using piece_type = piece_t<const X&>;

  static piece_type piece(const PartForEach<X>& part, const ScatterTarget& target, const LeafPath& path) {
    ScatterTarget there = target;
    there.rows = part.rows;
    return scatter_traits<X>::piece(part.whole, there, path);
  }
  template <class F>
  static void visit_rows(const PartForEach<X>& part, int axis, const LeafPath& path, F& f) {
    detail::visit_rows(part.whole, axis, path, f);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
