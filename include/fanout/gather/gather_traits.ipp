// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/gather_traits.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_extents(const GatherTarget& place, const LeafPath& path, std::size_t shard, std::string_view expected,
                    std::string_view found, std::string_view advice) {
  throw ShapeMismatch(explain({.what = Text() << "replicas " << place.did << " arrays of different extents",
                               .where = to_string(path),
                               .expected = Text() << expected << " as from " << place.describe(0),
                               .found = Text() << found << " from " << place.describe(shard),
                               .advice = advice}));
}

std::string all_axes_but(std::size_t joined, const std::size_t* extents, std::size_t rank) {
  Text text;
  text << "[";
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (axis != 0) text << ", ";
    if (axis == joined) {
      text << ":";
    } else {
      text << extents[axis];
    }
  }
  return text << "]";
}

void check_way_from(const MemorySpace& found, const GatherTarget& place, const LeafPath& path, std::size_t shard) {
  if (backend::can_transfer(place.target, found)) return;
  throw DeviceMismatch(explain(
      {.what = Text() << two_devices(place.target.space, found) << ": a replica returned an array in the wrong memory",
       .where = to_string(path),
       .expected = to_string(place.target.space),
       .found = Text() << found << " from " << place.describe(shard),
       .advice = "copy it there first"}));
}

}}}  // namespace fanout::v0::detail
