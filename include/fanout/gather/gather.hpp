// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/gather/combine.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_rows.hpp>
#include <fanout/gather/gather_traits.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/per_shard.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/gather/stack.hpp>
#include <fanout/gather/ungatherable.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The type that results of type X are gathered to. If they cannot be gathered, this is X: then the static_assert of
/// gather() is the only error.
template <class X>
struct gathered {
  using type = X;
};
template <class X>
  requires Gatherable<rules::Concatenate, X>
struct gathered<X> {
  using type = typename gather_traits<rules::Concatenate, X>::type;
};

}  // namespace detail

/// The type that results of type X are gathered to, without their reference or const. void for void.
template <class X>
using gathered_t = typename detail::gathered<std::remove_cvref_t<X>>::type;

/// Gathers the results of the shards, in row order. Concatenates arrays by rows, or on the axis of `place`. Collects
/// numbers in an array with one element per shard. Gathers trees leaf by leaf. A leaf under a rule, for example
/// psum(x), is gathered by that rule. Moves from results that it owns. Does not wait for copies that a device makes:
/// see backend::wait_for(). Throws ShapeMismatch or StructureMismatch, which name the leaf's path, if results do not
/// fit together. Throws DeviceMismatch if an array cannot be copied to the target's memory. Throws OutOfMemory.
template <class X>
gathered_t<X> gather(ShardResults<X>& pieces, const GatherTarget& place) {
  using finding = detail::find_ungatherable_t<rules::Concatenate, X, detail::LeafAt<>>;
  static_assert(
      detail::can_be_gathered<finding>,
      "fanout: the result of forward cannot be gathered (this diagnostic shows its type and place); return tensors, "
      "outputs, vectors, scalars, strings, or tuples, dicts, maps, vectors and structs of these; a class with private "
      "members, base classes, constructors, C arrays or more than 32 members lists its fields (tree/fields.hpp) or "
      "specialises gather_traits; a struct inside itself goes into a PerShard<T> or reduce(x, f)");
  static_assert(detail::has_complete_traits<finding>,
                "fanout: gather_traits of this type needs a `type` and a `gather` that fits (this diagnostic shows the "
                "rule, the type X and its place); add `using type = T;`, which the values of all shards are gathered "
                "to, and `static type gather(ShardResults<X>&, const GatherTarget&, const LeafPath&)`");
  static_assert(
      detail::is_taken<finding>,
      "fanout: a rule cannot gather the value that forward returns under it (this diagnostic shows the rule, the type "
      "and its place); psum takes numbers, pmean floating and complex ones, pmax and pmin ordered ones, reduce values "
      "that its function combines, stack any, and all of them arrays of these; concat<Axis> takes tensors, views and "
      "outputs with more than Axis axes, and under sharded no value has a rule of its own");
  static_assert(detail::can_be_held<finding>,
                "fanout: a member of a struct cannot hold its gathered value (this diagnostic shows both types and the "
                "place); make the member a Tensor, a std::vector, a Mean<T>, Sum<T>, Max<T>, Min<T>, First<T> or "
                "PerShard<T>, or return psum(x) of the struct, a tuple or a dict");
  if constexpr (std::is_void_v<finding>) {
    return gather_traits<rules::Concatenate, X>::gather(pieces, place, detail::output_root);
  } else {
    return pieces.take_only();
  }
}

namespace detail {

/// Gathers, and waits for the copies that the target's device makes.
template <class X>
gathered_t<X> gather_and_wait(ShardResults<X>& pieces, const GatherTarget& place) {
  gathered_t<X> result = fanout::gather(pieces, place);
  backend::wait_for(place.target);
  return result;
}

template <class X>
gathered_t<X> gather_sharded(const Sharded<X>& sharded, bool owned) {
  ShardResults<X> pieces(sharded.size(), owned, [&sharded](std::size_t i) -> const X& { return sharded[i]; });
  Plan plan;  // a shard's device is at the shard's own position
  for (const Shard& shard : sharded.plan()) plan.add({.rows = shard.rows, .device = plan.size()});
  // The call is over, so only the values hold its buffers. Values that stay keep their buffers.
  return gather_and_wait(pieces, {.plan = plan,
                                  .devices = sharded.devices().data(),
                                  .target = sharded.target(),
                                  .buffers_held = owned ? 0 : GatherTarget::by_others});
}

}  // namespace detail

/// Gathers the values of a sharded result, in the memory in which the call would have gathered them. Waits for the
/// copies. Moves from the values of an rvalue. Throws ShapeMismatch or StructureMismatch if values do not fit together,
/// and OutOfMemory.
template <class X>
gathered_t<X> gather(Sharded<X>&& sharded) {
  return detail::gather_sharded(sharded, true);
}
template <class X>
gathered_t<X> gather(const Sharded<X>& sharded) {
  return detail::gather_sharded(sharded, false);
}

}}  // namespace fanout::v0
