// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/transfer/pinned_memory.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

// All numbers are bytes. All functions throw CudaError, and InvalidDeviceId, `Invalid device id`, for a device that is
// not visible.

/// `free` and `total` bytes of a GPU.
using MemoryInfo = detail::MemoryInfo;

/// Memory of the whole GPU, other processes included. Makes the GPU's context at first use, since CUDA does not tell
/// otherwise.
inline MemoryInfo memory_info(GpuIndex device = {}) { return detail::memory_info_of(device.gpu()); }

// These report fanout's own pool of the GPU's memory in this process. They make no context: on a GPU that was not used,
// they return 0 and do nothing. Released memory does not count as allocated, even while earlier work may use it.

/// Bytes that tensors, buffers and scratch memory hold now, but for small scratch memory, for which each device keeps
/// blocks of 256 KiB.
inline std::size_t memory_allocated(GpuIndex device = {}) { return detail::pool_use(device.gpu()).allocated; }

/// The largest memory_allocated() since the process began, or since reset_peak_memory().
inline std::size_t max_memory_allocated(GpuIndex device = {}) { return detail::pool_use(device.gpu()).most_allocated; }

/// Bytes of the GPU's memory that the pool holds: allocated ones, and free ones that it keeps.
inline std::size_t memory_reserved(GpuIndex device = {}) { return detail::pool_use(device.gpu()).reserved; }

/// Restarts max_memory_allocated() at what is allocated now.
inline void reset_peak_memory(GpuIndex device = {}) { detail::reset_peaks(device.gpu()); }

/// Returns the memory that is kept for later to the GPU, so that others can allocate it. Allocated memory stays. It
/// does not give fanout more memory. Waits for all work of the GPU. Throws DeviceLost and CudaError.
inline void empty_cache(GpuIndex device) {
  detail::trim_parcels(device.gpu());
  detail::trim_pool(device.gpu());
}

/// The same on all GPUs that the process has used, and for the host memory that pinned_memory keeps.
inline void empty_cache() {
  detail::pinned_cache.trim();
  for (int i = 0; i < detail::count_gpus().count; ++i) empty_cache(GpuIndex(i));
}

}}}  // namespace fanout::v0::cuda
