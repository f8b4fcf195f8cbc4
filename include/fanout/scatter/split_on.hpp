// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// An argument that is split on this axis. split() makes it.
template <int Axis, class X>
struct SplitOn {
  X value;  ///< a const reference to the caller's lvalue, or the rvalue itself
};

template <int Axis, class X>
inline constexpr bool wraps_tree<SplitOn<Axis, X>> = true;

}  // namespace detail

template <int Axis, class X>
inline constexpr bool splits_itself<detail::SplitOn<Axis, X>> = true;

/// `model(split<1>(x))`: the array is split on this axis, and the indices of the axis count as rows. -1 is the last
/// axis. In a tree, this holds for all arrays without a rule of their own. `forward` receives a View of a packed copy,
/// which lives as long as the memory of empty(). A contiguous part is not copied. A `forward` that takes a
/// `StridedView<const T, R>` and no View receives the elements in place. Borrows an lvalue until the call has returned.
/// Takes over an rvalue. The call throws ShapeMismatch if an array cannot be split on this axis.
template <int Axis, class X>
detail::SplitOn<Axis, detail::kept_t<X>> split(X&& value) {
  using Value = std::remove_cvref_t<X>;
  if constexpr (detail::Contiguous<Value>) {
    constexpr int rank = static_cast<int>(Value::rank);
    static_assert(-rank <= Axis && Axis < rank, "fanout: split<Axis>(x) of an array that has no such axis");
  }
  return {std::forward<X>(value)};
}

namespace detail {

template <int Axis, class X>
inline constexpr bool splits_by_rows<SplitOn<Axis, X>> = Axis == 0;

template <int Axis, class X>
struct scatter_defaults<SplitOn<Axis, X>> {
  using Value = std::remove_cvref_t<X>;
  using piece_type = piece_t<Value>;

  static piece_type piece(const SplitOn<Axis, X>& x, const ScatterTarget& place, const LeafPath& path) {
    return piece_of<Value>(x.value, place.on_axis(Axis), path);
  }
  template <class F>
  static void visit_rows(const SplitOn<Axis, X>& x, int, const LeafPath& path, F& f) {
    detail::visit_rows(x.value, Axis, path, f);
  }

  /// Returns the part in place, for a `forward` that takes a StridedView.
  static auto strided_piece(const SplitOn<Axis, X>& x, const ScatterTarget& place,
                            const LeafPath& path) requires Contiguous<Value> {
    return strided_part(x.value, place.on_axis(Axis), path);
  }
};

}  // namespace detail
}}  // namespace fanout::v0
