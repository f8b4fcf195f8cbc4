// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <exception>
#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

/// Types of exceptions whose object a handler refers to. For a pointer it refers to a copy, which ends with the
/// handler: pointers are converted when they are caught. Functions and arrays are thrown as pointers.
template <class E>
inline constexpr bool has_caught_object =
    std::is_class_v<E> || std::is_union_v<E> || std::is_arithmetic_v<E> || std::is_enum_v<E>;

/// The exception, if it is an E or derived from one, otherwise null. Lives as long as an exception_ptr to it.
template <class E>
const E* exception_as(const std::exception_ptr& exception) noexcept {
  static_assert(
      has_caught_object<E>,
      "fanout: get_if takes the type of an exception, a class or a number: a thrown pointer is copied when it "
      "is caught, so there is nothing to point at; call rethrow() and catch the pointer");
  if constexpr (has_caught_object<E>) {
    try {
      std::rethrow_exception(exception);
    } catch (const E& wanted) {
      return &wanted;
    } catch (...) {  // another type
    }
  }
  return nullptr;
}

}}}  // namespace fanout::v0::detail
