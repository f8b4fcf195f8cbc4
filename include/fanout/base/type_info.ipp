// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/type_info.hpp>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string>

#if defined(__GXX_RTTI)

namespace fanout { inline namespace v0 { namespace detail {

// As <cxxabi.h> declares it, which takes the compiler 0.6 % of what including fanout takes above the standard headers.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the runtime library's
extern "C" char* __cxa_demangle(const char* mangled, char* buffer, std::size_t* length, int* status);

std::string class_name(const std::exception& object) {
  int status = 0;
  char* name = __cxa_demangle(typeid(object).name(), nullptr, nullptr, &status);
  if (name == nullptr) return "std::exception";
  std::string text = name;
  std::free(name);
  return text;
}

}}}  // namespace fanout::v0::detail

#else

namespace fanout { inline namespace v0 { namespace detail {

std::string class_name(const std::exception&) { return "std::exception"; }

}}}  // namespace fanout::v0::detail

#endif
