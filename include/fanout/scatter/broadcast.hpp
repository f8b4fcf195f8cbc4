// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>
#include <utility>

#include <fanout/array/view.hpp>
#include <fanout/memory/copy_into.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>
#include <fanout/tree/contents.hpp>
#include <fanout/tree/leaf_path.hpp>
#include <fanout/tree/node.hpp>
#include <fanout/tree/visit_arrays.hpp>

namespace fanout { inline namespace v0 {
namespace detail {

/// An argument that every shard receives whole. broadcast() makes it.
template <class X>
struct Broadcast {
  X value;  ///< a const reference to the caller's lvalue, or the rvalue itself
};

template <class X>
inline constexpr bool wraps_tree<Broadcast<X>> = true;

}  // namespace detail

template <class X>
inline constexpr bool splits_itself<detail::Broadcast<X>> = true;

/// `model(x, broadcast(table))`: each shard's `forward` receives a const reference to the whole of `table`. A vector,
/// map, optional or variant with a broadcast() inside copies it, since it cannot hold a reference. Tensors and views in
/// another memory are copied to that of the device. Both copies are made at every call, so data that never changes is
/// better a member of the model. Borrows an lvalue until the call has returned. Takes over an rvalue. The call throws
/// DeviceMismatch if the value cannot be copied to the device.
template <class X>
detail::Broadcast<detail::kept_t<X>> broadcast(X&& value) {
  return {std::forward<X>(value)};
}

namespace detail {

template <class X>
inline constexpr bool splits_by_rows<Broadcast<X>> = false;

/// Finds the first array of a tree that is not in this memory. Arrays without a memory space, for example a
/// std::vector, are not checked.
struct FindElsewhere {
  const MemorySpace& space;
  bool found = false;
  MemorySpace where = host_memory;

  template <class X>
  void operator()(const X& array, const LeafPath&) {
    if constexpr (requires { array.space(); }) {
      if (found || array.space() == space) return;
      found = true;
      where = array.space();
    }
  }
};

/// Returns the value itself if its arrays are in the shard's memory. Otherwise returns a copy there, which lives as
/// long as the shard's inputs. Throws DeviceMismatch if the value cannot be copied there.
template <class X>
const X& whole_in_place(const X& x, const ScatterTarget& place, const LeafPath& path) {
  FindElsewhere elsewhere{place.memory.space};
  visit_arrays(x, path, elsewhere);
  if (!elsewhere.found) return x;
  if (place.scratch != nullptr && backend::can_transfer(place.memory, elsewhere.where)) {
    if constexpr (BorrowsArray<X>) {
      using All = View<const typename X::value_type, X::rank>;
      if constexpr (std::is_same_v<X, All>) return place.scratch->retain(transferred(x, place, path));
    } else if constexpr (std::is_copy_constructible_v<X>) {
      backend::CopyInto into(place.memory);
      const X& copy = place.scratch->retain(X(x));
      into.finish();
      FindElsewhere left{place.memory.space};
      visit_arrays(copy, path, left);
      if (!left.found) return copy;
    }
  }
  refuse_piece(elsewhere.where, place, path);
}

template <class X>
struct scatter_defaults<Broadcast<X>> {
  using piece_type = const std::remove_reference_t<X>&;

  static piece_type piece(const Broadcast<X>& x, const ScatterTarget& place, const LeafPath& path) {
    if constexpr (HasArrayLeaf<std::remove_cvref_t<X>>) {
      return whole_in_place(x.value, place, path);
    } else {
      return x.value;
    }
  }
  template <class F>
  static void visit_rows(const Broadcast<X>&, int, const LeafPath&, F&) {}
};

}  // namespace detail
}}  // namespace fanout::v0
