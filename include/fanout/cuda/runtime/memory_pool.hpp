// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Throws CudaError if the GPU has no memory pools, as some virtual GPUs. CUDA's own errors say only `not supported`.
FANOUT_INLINE void require_pools(GpuState& gpu);

/// The pool of all of fanout's memory on a GPU, made at first use. It is not the GPU's default pool, so its statistics
/// are fanout's own. It keeps released memory: getting memory back from the driver takes milliseconds. It does not give
/// memory that one stream still uses to another one, which would then wait: a copy on `copies` for a kernel on
/// `compute`. Throws DeviceLost and CudaError.
FANOUT_INLINE cudaMemPool_t pool_of(GpuState& gpu);

/// Returns free memory and the kept block to the GPU, after waiting for all of its work. Does nothing on a GPU that was
/// not used. Throws DeviceLost and CudaError.
FANOUT_INLINE void trim_pool(GpuState& gpu);

/// The memory that fanout uses on a GPU, in bytes.
struct PoolUse {
  std::uint64_t allocated = 0;       // held by tensors, buffers and scratch memory
  std::uint64_t most_allocated = 0;  // since the process began, or reset_peaks()
  std::uint64_t reserved = 0;        // that the pool has of the GPU's memory: allocated and free
  std::uint64_t most_reserved = 0;
};

/// All zero for a GPU that was not used, where it makes nothing.
FANOUT_INLINE PoolUse pool_use(GpuState& gpu);

FANOUT_INLINE void reset_peaks(GpuState& gpu);

/// Free and total bytes of a GPU.
struct MemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
};

FANOUT_INLINE MemoryInfo memory_info_of(GpuState& gpu);

/// Allocates memory for work in this stream; other streams must wait for this one first. Aligned to 256 bytes. Throws
/// OutOfMemory if it does not help to give back what is kept, CudaError, and what an allocator of the user's throws.
FANOUT_INLINE void* allocate_in(StreamRef stream, std::size_t bytes);

/// Null if there is no memory.
FANOUT_INLINE void* allocate_from(const MemorySource& source, StreamRef stream, std::size_t bytes);
FANOUT_INLINE void* allocate_from(cudaMemPool_t pool, StreamRef stream, std::size_t bytes);

/// Releases memory once all work that is now in the stream is done. Any thread may call it, also at exit. Does nothing
/// on a GPU that is lost or that the parent of a fork used.
FANOUT_INLINE void release_in(StreamRef stream, void* data, std::size_t bytes) noexcept;

/// Keeps memory that no work in flight uses, for the next allocation of its size, which then makes no call of CUDA.
/// Releases what was kept before.
FANOUT_INLINE void keep_block(StreamRef stream, void* data, std::size_t bytes) noexcept;

FANOUT_INLINE void drop_kept_block(GpuState& gpu) noexcept;

/// The memory that was kept, if it has this size, for any stream; otherwise null. Throws DeviceLost and CudaError.
FANOUT_INLINE void* take_kept_block(GpuState& gpu, std::size_t bytes);

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/memory_pool.ipp>
#endif
