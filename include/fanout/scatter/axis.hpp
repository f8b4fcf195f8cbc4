// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

/// Returns the position of an axis in an array of `rank` axes. A negative axis counts from the end: -1 is the last one.
/// Throws ShapeMismatch, which names the path, if there is no such axis.
constexpr std::size_t checked_axis(int axis, std::size_t rank, const LeafPath& path) {
  const int axes = static_cast<int>(rank);
  if (axis < -axes || axis >= axes) {
    throw ShapeMismatch(
        explain({.what = "an array has no such axis",
                 .where = to_string(path),
                 .expected = "an axis from " + std::to_string(-axes) + " to " + std::to_string(axes - 1),
                 .found = "axis " + std::to_string(axis),
                 .advice = "choose a rule for this array alone: split<0>(x) or broadcast(x) for an argument, "
                           "concat<0>(x) for a result"}));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

}}  // namespace fanout::v0
