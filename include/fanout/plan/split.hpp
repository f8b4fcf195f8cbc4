// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// A split policy divides the rows [0, rows) among devices. It is a copyable object with a const call operator.
///
/// 1. `split(rows, devices)` returns shards in row order that cover [0, rows). `devices` is at least 1.
/// 2. The plan depends only on the arguments and on the value of the policy.
/// 3. With no rows, each device that takes part, at least one, gets one empty shard. Its replica then says what is
///    returned for no rows.
///
/// The constructor of a ParallelModel asks for the plan of no rows. So a policy that does not fit the number of devices
/// can throw there.
template <class S>
concept Split = std::copy_constructible<S> && requires(const S& split, std::size_t rows, std::size_t devices) {
  { split(rows, devices) } -> std::convertible_to<Plan>;
};

}}  // namespace fanout::v0
