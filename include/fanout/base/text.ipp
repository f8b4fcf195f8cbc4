// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/text.hpp>

#include <cstdio>
#include <string_view>

namespace fanout { inline namespace v0 { namespace detail {

Text& Text::operator<<(std::string_view part) {
  text_.append(part);
  return *this;
}

Text& Text::operator<<(char part) { return *this << std::string_view(&part, 1); }

// Not std::to_string, which in C++20 is compiled in each file.
Text& Text::add(long long number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%lld", number);
  return *this << std::string_view(digits);
}
Text& Text::add(unsigned long long number) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%llu", number);
  return *this << std::string_view(digits);
}

}}}  // namespace fanout::v0::detail
