// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// How `[0, rows)` is shared out. A split policy is a copyable object with a const call operator.
///
/// 1. `split(rows, devices)` returns shards in row order that cover [0, rows); devices >= 1.
/// 2. It depends on its arguments and its own value alone: the same call has the same plan.
/// 3. With no rows each device that takes part, at least one, gets one empty shard, so that its replica says what it
///    returns for no rows.
///
/// A ParallelModel asks for the plan of no rows when it is made, so a policy that throws for a number of devices that it
/// does not fit is found out there.
template <class S>
concept Split = std::copy_constructible<S> && requires(const S& split, std::size_t rows, std::size_t devices) {
  { split(rows, devices) } -> std::convertible_to<Plan>;
};

}}  // namespace fanout::v0
