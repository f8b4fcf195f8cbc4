// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <fanout/gather/combine.hpp>
#include <fanout/gather/concatenate.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/gather/first.hpp>
#include <fanout/gather/gather_rows.hpp>
#include <fanout/gather/gather_tree.hpp>
#include <fanout/gather/gathering.hpp>
#include <fanout/gather/per_shard.hpp>
#include <fanout/gather/reduced_member.hpp>
#include <fanout/gather/sharded.hpp>
#include <fanout/gather/stack.hpp>
#include <fanout/gather/ungatherable.hpp>
#include <fanout/tree/leaf_path.hpp>

namespace fanout { inline namespace v0 {

/// The type that results of type X are gathered to; void stays void. X itself where it cannot be gathered: what the
/// caller does with the result then compiles, and the sentence with which gather() refuses it is the only error.
template <class X>
struct gathered {
  using type = X;
};
template <class X>
  requires detail::Gatherable<Concatenate, X>
struct gathered<X> {
  using type = typename detail::Gathering<Concatenate, X>::type;
};
template <class X>
using gathered_t = typename gathered<std::remove_cvref_t<X>>::type;

/// Puts together what the shards returned, in row order: arrays by rows, scalars to one per shard, trees leaf by leaf,
/// and what stands under a rule of its own as that says. The pieces are moved from where they are owned. Throws
/// ShapeMismatch and StructureMismatch, which name the leaf, for results that do not fit together.
template <class X>
gathered_t<X> gather(Pieces<X>& pieces, const GatherPlace& place) {
  using finding = detail::find_ungatherable_t<Concatenate, X, detail::LeafAt<>>;
  static_assert(
      detail::can_be_gathered<finding>,
      "fanout: forward returns something that cannot be gathered (its type and place stand in this diagnostic); return "
      "tensors, outputs, vectors, scalars, strings, or tuples, dicts, maps, vectors and structs of these; a class with "
      "private members, base classes, constructors, C arrays or more than 32 members lists its fields "
      "(tree/fields.hpp)");
  static_assert(
      detail::is_taken<finding>,
      "fanout: a rule does not take what forward returns under it (the rule, the type and its place stand in "
      "this diagnostic); psum takes numbers, pmean floating and complex ones, pmax and pmin those with an "
      "order, reduce those of which its function makes one of two, stack any, and all of them arrays of these; "
      "concat<Axis> takes tensors, views and outputs with more than Axis axes, and under sharded nothing chooses a "
      "rule of its own");
  static_assert(detail::can_be_held<finding>,
                "fanout: a struct cannot hold what its member is gathered to (both types and the place stand in this "
                "diagnostic); "
                "make the member a Tensor, a std::vector, a Mean<T>, Sum<T>, Max<T>, Min<T>, First<T> or PerShard<T>, "
                "or return psum(x) of "
                "the struct, a tuple or a dict");
  if constexpr (std::is_void_v<finding>) {
    return detail::Gathering<Concatenate, X>::gather(pieces, place, detail::output_root);
  } else {
    return pieces.take_only();
  }
}

namespace detail {

/// What the target's own device puts together is there when this returns.
template <class X>
gathered_t<X> gather_and_wait(Pieces<X>& pieces, const GatherPlace& place) {
  gathered_t<X> result = fanout::gather(pieces, place);
  backend::wait_for(place.target);
  return result;
}

template <class X>
gathered_t<X> gather_sharded(const Sharded<X>& sharded, bool owned) {
  Pieces<X> pieces(sharded.size(), owned, [&sharded](std::size_t i) -> const X& { return sharded[i]; });
  Plan plan;  // which names the devices by the shards
  for (const Shard& shard : sharded.plan()) plan.add({.rows = shard.rows, .device = plan.size()});
  // The call is over, so that only the values hold its buffers; of values that stay, none is taken.
  return gather_and_wait(pieces, {.plan = plan,
                                  .devices = sharded.devices().data(),
                                  .target = sharded.target(),
                                  .buffers_held = owned ? 0 : GatherPlace::by_others});
}

}  // namespace detail

/// Puts together what a call left sharded, in the memory where its results are gathered. Moves from the values of an
/// rvalue. Throws ShapeMismatch and StructureMismatch for values that do not fit together.
template <class X>
gathered_t<X> gather(Sharded<X>&& sharded) {
  return detail::gather_sharded(sharded, true);
}
template <class X>
gathered_t<X> gather(const Sharded<X>& sharded) {
  return detail::gather_sharded(sharded, false);
}

}}  // namespace fanout::v0
