// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <exception>
#include <string>

#include <fanout/base/separate_compilation.hpp>

#if defined(__GXX_RTTI)

#include <typeinfo>

namespace fanout { inline namespace v0 { namespace detail {

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

}}}  // namespace fanout::v0::detail

#endif

namespace fanout { inline namespace v0 { namespace detail {

/// The class of the object, as it is written in C++; `std::exception` without run-time type information.
[[gnu::cold]] FANOUT_INLINE std::string class_name(const std::exception& object);

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/base/type_info.ipp>
#endif
