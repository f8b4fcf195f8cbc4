// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Thrust on host devices, with any C++20 compiler. In a .cu that has GPUs too include fanout/adapt/thrust.cuh, which
// adds them. Thrust comes with the CUDA toolkit, in include/cccl, where no compiler but nvcc looks by itself; an older
// one that the system has may be found in its place.

#include <fanout/base/requirements.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

#include <thrust/execution_policy.h>

#include <fanout/context/context.hpp>
#include <fanout/device/host_device.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

template <class C, class D>
concept ContextOn = Context<C> && std::same_as<std::remove_cvref_t<decltype(std::declval<C&>().device())>, D>;

}  // namespace detail

/// Thrust's execution policy for a context: algorithms of Thrust that are given it run on the context's device.
///
///     thrust::transform(fanout::thrust_policy(ctx), x.begin(), x.end(), y.begin(), Square{});
///
/// On host devices they run in the calling thread and have ended when they return. Not Thrust's own threads
/// (thrust::host may be OpenMP or TBB): fanout runs a shard on each device at the same time already, and a team in each
/// of them would only fight for the same cores. With one device of many cores, give Thrust a policy of its own.
template <detail::ContextOn<HostDevice> C>
auto thrust_policy(C&) {
  return ::thrust::seq;
}

}}  // namespace fanout::v0
