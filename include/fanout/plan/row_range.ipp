// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/row_range.hpp>

#include <string>

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 {

std::string to_string(const RowRange& rows) {
  detail::Text text;  // +=, since g++ 12 -O3 warns of an overlap in "[" + to_string(...) that does not exist
  text << "[";
  text << rows.first << ", " << rows.last << ")";
  return text;
}

}}  // namespace fanout::v0
