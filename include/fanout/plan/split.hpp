// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

/// A split policy divides the rows [0, rows) among devices. It is a copyable object with a const call operator.
///
/// 1. `split(rows, devices)` returns shards in row order that cover [0, rows). `devices` is at least 1.
/// 2. The plan depends only on the arguments, on the value of the policy, and on the calls that it has observed.
/// 3. With no rows, each device that takes part, at least one, gets one empty shard. Its replica then says what is
///    returned for no rows.
/// 4. A policy may have a member `observe(const CallTimes&)`, which is not const. A model with such a policy measures
///    its calls. It shows each to its copy of the policy when the call has ended: an asynchronous one when its result
///    has been taken or dropped. Neither function is called while the other one runs.
/// 5. A policy may have a member `begin(const DeviceId* devices, std::size_t count)`, which is not const. A model calls
///    it once, before it asks for a plan.
///
/// The constructor of a ParallelModel asks for the plan of no rows. So a policy that does not fit the number of devices
/// can throw there.
template <class S>
concept Split = std::copy_constructible<S> && requires(const S& split, std::size_t rows, std::size_t devices) {
  { split(rows, devices) } -> std::convertible_to<Plan>;
};

}}  // namespace fanout::v0
