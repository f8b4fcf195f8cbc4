// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fanout { inline namespace v0 { namespace detail {

template <class T>
constexpr std::string_view name_of_instance() {
  return __PRETTY_FUNCTION__;
}

/// The name of a type as the compiler spells it. Works without RTTI.
template <class T>
constexpr std::string_view type_name_view() {
  // The text around the type is the same for every type, so a known type shows where the name begins and ends.
  constexpr std::string_view known = "double";
  constexpr std::size_t before = name_of_instance<double>().find(known);
  constexpr std::size_t around = name_of_instance<double>().size() - known.size();
  const std::string_view text = name_of_instance<T>();
  return text.substr(before, text.size() - around);
}

/// The same, for messages.
template <class T>
std::string type_name() {
  return std::string(type_name_view<T>());
}

}}}  // namespace fanout::v0::detail
