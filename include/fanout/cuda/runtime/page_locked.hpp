// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A GPU whose context can be used for host memory: one in use, so that no other context is made; GPU 0 if none is in
/// use.
FANOUT_INLINE GpuState& any_gpu();

/// Allocates page-locked host memory, which all GPUs read and write by DMA. It is on the NUMA node `node` of the host
/// if the kernel allows it; negative: anywhere. Throws OutOfMemory and CudaError.
FANOUT_INLINE void* allocate_page_locked(std::size_t bytes, GpuState& gpu, int node = -1);

/// Frees it without waiting: no GPU may use it any more.
inline void release_page_locked(void* data, GpuState& gpu) noexcept {
  const QuietGuard entered(gpu);
  if (entered.entered()) note(::cudaFreeHost(data), gpu.index());
}

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/page_locked.ipp>
#endif
