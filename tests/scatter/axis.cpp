// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/axis.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>

#include "support/message_of.hpp"

using fanout::LeafPath;
using fanout::backend::checked_axis;

TEST_CASE("an axis is counted from the first one, or backwards from the last one") {
  const LeafPath path("input");
  for (int axis = 0; axis < 3; ++axis) {
    CHECK(checked_axis(axis, 3, path) == static_cast<std::size_t>(axis));
    CHECK(checked_axis(axis - 3, 3, path) == static_cast<std::size_t>(axis));
  }
}

TEST_CASE("an axis that an array lacks is refused, with the axes that it has and a way out") {
  const LeafPath path("input");
  for (const int axis : {2, -3, 100}) {
    CHECK(fanout_test::message_of<fanout::ShapeMismatch>([&] { static_cast<void>(checked_axis(axis, 2, path)); }) ==
          "an array has no such axis at input: expected an axis from -2 to 1, found axis " + std::to_string(axis) +
              "; choose a rule for this array alone: split<0>(x) or broadcast(x) for an argument, concat<0>(x) for a "
              "result");
  }
  CHECK_THROWS_AS(static_cast<void>(checked_axis(0, 0, path)), fanout::ShapeMismatch);
}
