// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/gather/join_arrays.hpp>

#include <cstddef>
#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::string all_axes_but(std::size_t joined, const std::size_t* extents, std::size_t rank) {
  Text text;
  text << "[";
  for (std::size_t axis = 0; axis < rank; ++axis) {
    text << (axis == 0 ? "" : ", ") << (axis == joined ? ":" : std::to_string(extents[axis]));
  }
  return text << "]";
}

}}}  // namespace fanout::v0::detail
