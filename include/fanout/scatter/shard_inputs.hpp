// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <fanout/base/error.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/scratch.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/scatter/scatter.hpp>
#include <fanout/scatter/shard_place.hpp>
#include <fanout/scatter/splitting.hpp>

namespace fanout { inline namespace v0 {

/// What the shards of one call are handed, in row order: a plan, and the arguments that it splits. Made by scatter(),
/// which makes sure that they have as many rows, for apply(), as often as you like. Borrows the arguments that were
/// lvalues (`const X&`) and owns the others (`X`). A shard's pieces are made when it asks for them, so there is nothing
/// to allocate.
template <class... Args>
struct ShardInputs {
  Plan plan;
  std::tuple<Args...> arguments;
  int axis = 0;  ///< on which arrays are split that do not choose for themselves

  std::size_t size() const noexcept { return plan.size(); }

  using pieces_type = std::tuple<detail::piece_t<Args>...>;

  /// What shard i < size() is handed on a device with this memory: rows of the arrays, in place, and references to the
  /// rest. Borrows from this, and from the scratch, if one is given, what had to be packed or brought to the memory;
  /// without one InvalidArgument is thrown for that. Throws DeviceMismatch for an array in a memory that no way is
  /// known from.
  pieces_type pieces(std::size_t i, const backend::Memory& memory, detail::Scratch* scratch = nullptr) const {
    const detail::ShardPlace place{
        .shard = i, .rows = plan[i].rows, .memory = memory, .scratch = scratch, .axis = axis};
    return std::apply([&](const auto&... args) { return fanout::scatter(place, args...); }, arguments);
  }

  /// The same in the host's memory.
  pieces_type operator[](std::size_t i) const { return pieces(i, backend::Memory{}); }
};

namespace detail {

/// What scatter() makes of arguments that it is given as `A&&`.
template <class... A>
using shard_inputs_t = ShardInputs<kept_t<A>...>;

}  // namespace detail

/// Splits the arguments by a plan: `scatter(EvenSplit{}(rows, 2), x, y)`. Throws ShapeMismatch if their arrays do not
/// all have the plan's rows; arguments with nothing to split fit every plan.
template <class... Args>
detail::shard_inputs_t<Args...> scatter(const Plan& plan, Args&&... args) {
  const detail::CountRows count = detail::count_rows(0, args...);
  if (count.plan != nullptr && !(*count.plan == plan)) {
    throw ShapeMismatch(explain({.what = "a plan for other arguments",
                                 .where = "scatter",
                                 .expected = "the plan of the sharded ones, " + to_string(*count.plan),
                                 .found = to_string(plan)}));
  }
  if (count.rows && *count.rows != plan.rows()) {
    throw ShapeMismatch(explain({.what = "a plan for other arguments",
                                 .where = "scatter",
                                 .expected = std::to_string(plan.rows()) + " rows",
                                 .found = std::to_string(*count.rows)}));
  }
  return {plan, {std::forward<Args>(args)...}};
}

/// Splits the arguments evenly between the devices of a set; see EvenSplit. Where there is nothing to split, as in
/// `scatter(devices, broadcast(x))`, every device gets all of it. Throws ShapeMismatch if the arrays among them have
/// different numbers of rows.
template <Device... Ds, class... Args>
detail::shard_inputs_t<Args...> scatter(const DeviceSet<Ds...>& devices, Args&&... args) {
  const detail::CountRows count = detail::count_rows(0, args...);
  return {count.plan != nullptr ? *count.plan : EvenSplit{}(count.rows.value_or(0), devices.size()),
          {std::forward<Args>(args)...}};
}

}}  // namespace fanout::v0
