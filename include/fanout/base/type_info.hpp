// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <cstdlib>
#include <exception>
#include <string>

#if defined(__GXX_RTTI)

#include <typeinfo>

namespace fanout { inline namespace v0 { namespace detail {

// As <cxxabi.h> declares it, which takes the compiler 0.6 % of what including fanout takes above the standard headers.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the runtime library's
extern "C" char* __cxa_demangle(const char* mangled, char* buffer, std::size_t* length, int* status);

/// Not every runtime library has the typeid of R itself, for example of _Float16.
template <class R>
struct TypeTag {};

/// Stands for the type R in all shared libraries of the process. Compare by same_type().
template <class R>
const void* type_id() noexcept {
  return &typeid(TypeTag<R>);
}
inline bool same_type(const void* a, const void* b) noexcept {
  return *static_cast<const std::type_info*>(a) == *static_cast<const std::type_info*>(b);
}

/// The class of the object, as it is written in C++.
inline std::string class_name(const std::exception& object) {
  int status = 0;
  char* name = __cxa_demangle(typeid(object).name(), nullptr, nullptr, &status);
  if (name == nullptr) return "std::exception";
  std::string text = name;
  std::free(name);
  return text;
}

}}}  // namespace fanout::v0::detail

#else  // without run-time type information

namespace fanout { inline namespace v0 { namespace detail {

template <class R>
inline constexpr char type_tag = 0;
template <class R>
const void* type_id() noexcept {
  return &type_tag<R>;
}
inline bool same_type(const void* a, const void* b) noexcept { return a == b; }

inline std::string class_name(const std::exception&) { return "std::exception"; }

}}}  // namespace fanout::v0::detail

#endif
