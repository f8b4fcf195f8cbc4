// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/memory/extents.hpp>

#include <cstddef>
#include <string>
#include <string_view>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::string extents_text(const std::size_t* extents, std::size_t rank) {
  Text text;
  text << "[";
  for (std::size_t axis = 0; axis < rank; ++axis) text << (axis == 0 ? "" : ", ") << extents[axis];
  return text << "]";
}

void refuse_uncountable(std::string_view found) {
  throw ShapeMismatch(explain({.what = "invalid extents",
                               .expected = "numbers of elements that are not negative and whose bytes fit into memory",
                               .found = found}));
}

}}}  // namespace fanout::v0::detail
