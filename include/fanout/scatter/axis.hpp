// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Throws ShapeMismatch for an array that can be split only by rows: its type tells no other axes, or it is an inout().
[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_axis(int axis, const LeafPath& path);
[[noreturn, gnu::cold]] FANOUT_INLINE void refuse_axis_of(int axes, int axis, const LeafPath& path);

}  // namespace detail

namespace backend {

/// Returns the position of an axis in an array of `rank` axes. A negative axis counts from the end: -1 is the last one.
/// Throws ShapeMismatch, which names the path, if there is no such axis.
constexpr std::size_t checked_axis(int axis, std::size_t rank, const LeafPath& path) {
  const int axes = static_cast<int>(rank);
  if (axis < -axes || axis >= axes) detail::refuse_axis_of(axes, axis, path);
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

}  // namespace backend

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/scatter/axis.ipp>
#endif
