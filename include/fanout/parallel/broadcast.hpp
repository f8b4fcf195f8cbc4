// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/tree/node.hpp>

namespace fanout::inline v0 {

/// An argument that every replica gets whole. Made by broadcast().
template <class X>
struct Broadcast {
  X value;  ///< a const reference to what the caller has, or what was moved in
};
template <class X>
inline constexpr bool wraps_tree<Broadcast<X>> = true;

/// `model(x, broadcast(table))`: `forward` is handed a const reference to the whole of `table`, which is not split and
/// not copied. Borrows an lvalue until the call has returned; takes over an rvalue.
template <class X>
Broadcast<std::conditional_t<std::is_lvalue_reference_v<X>, const std::remove_reference_t<X>&, X>> broadcast(
    X&& value) {
  return {std::forward<X>(value)};
}

}  // namespace fanout::inline v0
