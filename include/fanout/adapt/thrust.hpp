// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Thrust on host devices, with any C++20 compiler. In a .cu that also uses GPUs, include fanout/adapt/thrust.cuh
// instead. The CUDA toolkit has Thrust in include/cccl, where only nvcc looks by itself. Other compilers may find an
// older Thrust of the system.

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

/// Thrust's execution policy for a context: Thrust algorithms with this policy run on the context's device.
///
///     thrust::transform(fanout::thrust_policy(ctx), x.begin(), x.end(), y.begin(), Square{});
///
/// On host devices they run sequentially on the calling thread, and have ended when they return. Thrust's own threads
/// (thrust::host may be OpenMP or TBB) are not used: every device runs a shard at the same time, so teams of threads
/// would compete for the cores. For one device with many cores, pass a policy of Thrust's own.
template <detail::ContextOn<HostDevice> C>
auto thrust_policy(C&) {
  return ::thrust::seq;
}

}}  // namespace fanout::v0
