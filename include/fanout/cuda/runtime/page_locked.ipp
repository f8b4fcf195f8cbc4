// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/page_locked.hpp>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/preferred_node.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

GpuState& any_gpu() {
  for (int i = 0; i < known_count.load(fanout::detail::MemoryOrder::acquire); ++i) {
    GpuState* gpu = gpus[i].gpu.load(fanout::detail::MemoryOrder::acquire);
    if (gpu != nullptr && gpu->known_context() != nullptr && gpu->usable()) return *gpu;
  }
  return gpu_at(0);
}

void* allocate_page_locked(std::size_t bytes, GpuState& gpu, int node) {
  const DeviceGuard entered(gpu);  // before the policy: threads that a new context starts would inherit it
  const PreferredNode preferred(node);
  void* data = nullptr;
  const cudaError_t status = ::cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    note(status, gpu.index());
    throw OutOfMemory(explain({.what = "out of page-locked host memory",
                               .expected = std::to_string(bytes) + " bytes",
                               .advice = "use fewer or smaller pinned arrays: they cannot be swapped out"}));
  }
  check(status, "cudaHostAlloc", gpu.index());
  return data;
}

}}}  // namespace fanout::v0::cuda::detail
