// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/scatter/axis.hpp>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_axis(int axis, const LeafPath& path) {
  throw ShapeMismatch(explain({.what = "an argument that is split by rows only",
                               .where = to_string(path),
                               .expected = "axis 0",
                               .found = Text() << "axis " << axis,
                               .advice = "pass split<0>(x) or broadcast(x)"}));
}

void refuse_axis_of(int axes, int axis, const LeafPath& path) {
  throw ShapeMismatch(
      explain({.what = "an array has no such axis",
               .where = to_string(path),
               .expected = Text() << "an axis from " << -axes << " to " << axes - 1,
               .found = Text() << "axis " << axis,
               .advice = "choose a rule for this array alone: split<0>(x) or broadcast(x) for an argument, "
                         "concat<0>(x) for a result"}));
}

}}}  // namespace fanout::v0::detail
