// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <type_traits>

namespace fanout { inline namespace v0 { namespace detail {

// std::exchange and std::swap check many traits of each type. These compile faster.

template <class T>
inline constexpr bool moves_without_throwing =
    std::is_nothrow_move_constructible_v<T>&& std::is_nothrow_move_assignable_v<T>;

/// Sets `x` to `by` and returns the old value.
template <class T>
[[nodiscard]] constexpr T exchange(T& x, std::type_identity_t<T> by) noexcept(moves_without_throwing<T>) {
  T before = static_cast<T&&>(x);
  x = static_cast<T&&>(by);
  return before;
}

template <class T>
constexpr void swap(T& a, T& b) noexcept(moves_without_throwing<T>) {
  T before = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(before);
}

}}}  // namespace fanout::v0::detail
