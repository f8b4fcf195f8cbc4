// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/state/state_mismatch.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::string text_of(const StateDifferences& differences, const std::string& path) {
  std::string text = "Error(s) in loading state_dict from " + path + ":";
  const auto add_names = [&text](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += std::string("\n\t") + what + " key(s) in state_dict: ";
    for (const std::string& name : names) text += (&name == names.data() ? "\"" : ", \"") + name + '"';
    text += ". ";
  };
  add_names("Missing", differences.missing);
  add_names("Unexpected", differences.unexpected);
  for (const std::string& line : differences.texts) text += "\n\t" + line;
  if (!differences.advice.empty()) text += "\n\t" + differences.advice;
  return text;
}

}}}  // namespace fanout::v0::detail
