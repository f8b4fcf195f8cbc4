// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <fanout/tree/tie_members.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Room for an X that is never made, so that there are members to point to.
template <class X>
union NeverMade {
  char none;
  X value;

  constexpr NeverMade() noexcept : none() {}
  constexpr ~NeverMade() {}
};

// Not constexpr, since clang then needs a type that constant expressions can destroy. Its address is a constant all the
// same.
template <class X>
inline constinit const NeverMade<X> never_made{};

/// Compilers accept a pointer to a member of an object as a template argument if it is in a struct. They print it with
/// the member's name at the end.
template <class P>
struct Pointing {
  P pointer;
};
template <class P>
Pointing(P) -> Pointing<P>;

template <auto To>
consteval std::string_view print_pointing() {
  return __PRETTY_FUNCTION__;
}

template <class X, std::size_t I>
consteval auto point_to_member() {
  return Pointing{&std::get<I>(tie_members(never_made<X>.value).references)};
}

/// False for structs with references in them: no constant expression knows what they refer to.
template <class X, std::size_t I>
concept HasPrintedName = requires {
  typename std::bool_constant<print_pointing<point_to_member<X, I>()>().empty()>;
};

constexpr bool stands_in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The name of the I-th member of a plain struct, as the compiler prints it. Empty if the compiler does not print it.
/// In a .cu, nvcc's front end prints some members differently. The host's compiler runs after it and makes the program,
/// so the names in the program are right.
template <PlainStruct X, std::size_t I>
consteval std::string_view member_name() {
  if constexpr (HasPrintedName<X, I>) {
    const std::string_view text = print_pointing<point_to_member<X, I>()>();
    std::size_t end = text.rfind('}');
    while (end != 0 && !stands_in_a_name(text[end - 1])) --end;
    std::size_t begin = end;
    while (begin != 0 && stands_in_a_name(text[begin - 1])) --begin;
    return text.substr(begin, end - begin);
  } else {
    return {};
  }
}

}}}  // namespace fanout::v0::detail
