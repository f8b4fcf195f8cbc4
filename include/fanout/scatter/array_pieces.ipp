// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/scatter/array_pieces.hpp>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void refuse_piece(const MemorySpace& found, const ScatterTarget& place, const LeafPath& path) {
  throw DeviceMismatch(
      explain({.what = Text() << two_devices(place.memory.space, found) << ": an argument lies in the wrong memory",
               .where = to_string(path),
               .expected = to_string(place.memory.space),
               .found = to_string(found),
               .advice = "copy it there first"}));
}

Scratch& scratch_for(const ScatterTarget& place, const LeafPath& path) {
  if (place.scratch != nullptr) return *place.scratch;
  throw InvalidArgument(explain({.what = "an array must be packed or copied, and there is no scratch for it",
                                 .where = to_string(path),
                                 .advice = "pass a Scratch that outlives the pieces"}));
}

}}}  // namespace fanout::v0::detail
