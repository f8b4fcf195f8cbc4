// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/parallel/shard_place.hpp>
#include <fanout/parallel/splitting.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>

namespace fanout::inline v0 {

/// An argument that every replica gets whole. Made by broadcast().
template <class X>
struct Broadcast {
  X value;  ///< a const reference to what the caller has, or what was moved in
};
template <class X>
inline constexpr bool wraps_tree<Broadcast<X>> = true;
template <class X>
inline constexpr bool splits_itself<Broadcast<X>> = true;

/// `model(x, broadcast(table))`: `forward` is handed a const reference to the whole of `table`, which is not split and
/// not copied, except inside of a vector, a map, an optional or a variant. Borrows an lvalue until the call has
/// returned; takes over an rvalue.
template <class X>
Broadcast<detail::kept_t<X>> broadcast(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <class X>
struct Splitting<Broadcast<X>> {
  using piece_type = const std::remove_reference_t<X>&;

  static piece_type piece(const Broadcast<X>& x, const ShardPlace&, const LeafPath&) { return x.value; }
  template <class F>
  static void visit_rows(const Broadcast<X>&, int, const LeafPath&, F&) {}
};

}  // namespace detail
}  // namespace fanout::inline v0
