// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 {

std::string explain(const detail::Explanation& parts) {
  std::string text = parts.what;
  if (!parts.where.empty()) text += " at " + parts.where;
  if (!parts.expected.empty()) text += ": expected " + parts.expected;
  if (!parts.found.empty()) text += (parts.expected.empty() ? ": found " : ", found ") + parts.found;
  if (!parts.advice.empty()) text += "; " + parts.advice;
  return text;
}

}}  // namespace fanout::v0
