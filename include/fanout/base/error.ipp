// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 {

std::string explain(const detail::Explanation& parts) {
  std::string text;
  const auto add = [&text](const char* before, std::string_view part) {
    if (!part.empty()) text.append(before).append(part);
  };
  add("", parts.what);
  add(" at ", parts.where);
  add(": expected ", parts.expected);
  add(parts.expected.empty() ? ": found " : ", found ", parts.found);
  add("; ", parts.advice);
  return text;
}

}}  // namespace fanout::v0
