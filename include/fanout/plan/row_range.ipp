// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/row_range.hpp>

#include <string>

namespace fanout { inline namespace v0 {

std::string to_string(const RowRange& rows) {
  std::string text = "[";  // +=, since g++ 12 -O3 warns of an overlap in "[" + to_string(...) that does not exist
  text += std::to_string(rows.first) + ", " + std::to_string(rows.last) + ")";
  return text;
}

}}  // namespace fanout::v0
