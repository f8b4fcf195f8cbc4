// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/preferred_node.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A GPU whose context can be used for host memory: one in use, so that no other context is made; GPU 0 if none is in
/// use.
inline GpuState& any_gpu() {
  for (int i = 0; i < known_count.load(fanout::detail::MemoryOrder::acquire); ++i) {
    GpuState* gpu = gpus[i].gpu.load(fanout::detail::MemoryOrder::acquire);
    if (gpu != nullptr && gpu->known_context() != nullptr && gpu->usable()) return *gpu;
  }
  return gpu_at(0);
}

/// Allocates page-locked host memory, which all GPUs read and write by DMA. It is on the NUMA node `node` of the host
/// if the kernel allows it; negative: anywhere. Throws OutOfMemory and CudaError.
inline void* allocate_page_locked(std::size_t bytes, GpuState& gpu, int node = -1) {
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

/// Frees it without waiting: no GPU may use it any more.
inline void release_page_locked(void* data, GpuState& gpu) noexcept {
  const QuietGuard entered(gpu);
  if (entered.entered()) note(::cudaFreeHost(data), gpu.index());
}

}}}  // namespace fanout::v0::cuda::detail
