// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/checked_scatter.hpp>
#include <fanout/scatter/scatter.hpp>
#include <fanout/scatter/scatter_target.hpp>
#include <fanout/scatter/scatter_traits.hpp>

namespace fanout { inline namespace v0 {

/// The inputs of the shards of a call: a plan, and the arguments that it splits. scatter() makes it and checks the
/// rows. apply() takes it, any number of times. Borrows lvalue arguments (`const X&`) and owns the others (`X`).
/// Allocates nothing, since the inputs of a shard are made on request.
template <class... Args>
struct ShardInputs {
  Plan plan;
  std::tuple<Args...> arguments;
  int axis = 0;  ///< on which arrays are split, unless they choose their own

  /// The number of shards.
  std::size_t size() const noexcept { return plan.size(); }

  using pieces_type = std::tuple<detail::piece_t<Args>...>;

  /// Makes the inputs of shard i < size() for a device with this memory: a view of the shard's rows of each array, and
  /// a const reference to every other argument. Borrows from this object. Rows that must be packed, or copied to that
  /// memory, are in the scratch. Throws what scatter() throws for a target: InvalidArgument if rows need a scratch and
  /// it is null, DeviceMismatch if an array cannot be copied to that memory.
  pieces_type pieces(std::size_t i, const backend::Memory& memory, detail::Scratch* scratch = nullptr) const {
    const ScatterTarget place{.shard = i, .rows = plan[i].rows, .memory = memory, .scratch = scratch, .axis = axis};
    return std::apply([&](const auto&... args) { return fanout::scatter(place, args...); }, arguments);
  }

  /// Makes the inputs of shard i for host memory, without a scratch.
  pieces_type operator[](std::size_t i) const { return pieces(i, backend::Memory{}); }
};

namespace detail {

/// The type that scatter() returns for arguments `A&&`.
template <class... A>
using shard_inputs_t = ShardInputs<kept_t<A>...>;

}  // namespace detail

/// Splits the arguments by a plan: `scatter(EvenSplit{}(rows, 2), x, y)`. Arguments without arrays fit every plan.
/// Throws ShapeMismatch if an array has another number of rows than the plan, or if a sharded argument has another
/// plan. Throws InvalidArgument if an inout() overlaps another argument. apply() checks the plan itself: see
/// check_plan().
template <class... Args>
detail::shard_inputs_t<Args...> scatter(const Plan& plan, Args&&... args) {
  const detail::CountRows count = detail::count_rows(0, args...);
  if (count.plan != nullptr && !(*count.plan == plan)) {
    throw ShapeMismatch(explain({.what = "the plan does not fit the arguments",
                                 .where = "scatter",
                                 .expected = detail::Text() << "the plan of the sharded arguments, " << *count.plan,
                                 .found = to_string(plan)}));
  }
  if (count.rows && *count.rows != plan.rows()) {
    throw ShapeMismatch(explain({.what = "the plan does not fit the arguments",
                                 .where = "scatter",
                                 .expected = detail::Text() << plan.rows() << " rows",
                                 .found = detail::Text() << *count.rows}));
  }
  return {plan, {std::forward<Args>(args)...}};
}

/// Splits the arguments evenly between the devices of a set: see EvenSplit. A sharded argument brings its own plan. If
/// nothing is split, as in `scatter(devices, broadcast(x))`, each device gets all arguments. Throws ShapeMismatch if
/// arrays have different numbers of rows. Throws InvalidArgument if an inout() overlaps another argument.
template <Device... Ds, class... Args>
detail::shard_inputs_t<Args...> scatter(const DeviceSet<Ds...>& devices, Args&&... args) {
  const detail::CountRows count = detail::count_rows(0, args...);
  return {count.plan != nullptr ? *count.plan : EvenSplit{}(count.rows.value_or(0), devices.size()),
          {std::forward<Args>(args)...}};
}

}}  // namespace fanout::v0
