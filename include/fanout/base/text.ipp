// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/text.hpp>

namespace fanout { inline namespace v0 { namespace detail {

Text& Text::operator<<(std::string_view part) {
  text_.append(part);
  return *this;
}

Text& Text::operator<<(char part) {
  text_.push_back(part);
  return *this;
}

Text& Text::add(long long number) { return *this << std::string_view(std::to_string(number)); }
Text& Text::add(unsigned long long number) { return *this << std::string_view(std::to_string(number)); }

}}}  // namespace fanout::v0::detail
