// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/allocator.hpp>

#include <string>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

void set_source(GpuState& gpu, const MemorySource& source) {
  const fanout::detail::ForkSafeLock making(gpu.making());  // so that no pool is made meanwhile
  const bool has_pool = gpu.pool().load(fanout::detail::MemoryOrder::acquire) != nullptr;
  if (!has_pool && gpu.source().load(fanout::detail::MemoryOrder::acquire) == nullptr) {
    gpu.source().store(new MemorySource(source), fanout::detail::MemoryOrder::release);
    return;
  }
  throw Error(explain({.what = "use_allocator() on " + name_of_gpu(gpu.index()),
                       .expected = "a GPU on which fanout has not allocated memory",
                       .found = has_pool ? "one on which it has" : "one that has an allocator already",
                       .advice = "call it at the beginning of main(), once for each GPU"}));
}

}}}}  // namespace fanout::v0::cuda::detail
