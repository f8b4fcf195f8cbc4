// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// Allocates a GPU's memory in the order of streams, as cudaMallocAsync does.
///
/// 1. `allocate(bytes, stream)` returns memory of the current device, aligned to 256 bytes, for work that is enqueued
///    in the stream from now on. Throws std::bad_alloc if there is none.
/// 2. `deallocate(data, bytes, stream)` takes the memory back. Work that was enqueued in the stream before may still
///    use it. If `allocate` was given another stream, the work in that stream is done. Throws nothing.
/// 3. Several threads may call both at once. Neither waits for the stream.
template <class A>
concept StreamAllocator = requires(A& allocator, void* data, std::size_t bytes, cudaStream_t stream) {
  { allocator.allocate(bytes, stream) } -> std::convertible_to<void*>;
  allocator.deallocate(data, bytes, stream);
};

namespace detail {

/// Throws Error if the GPU has memory of fanout's already, or another source.
FANOUT_INLINE void set_source(GpuState& gpu, const MemorySource& source);

}  // namespace detail

/// From now on all memory of fanout's on a GPU comes from an allocator of yours, so that both share one pool: that of
/// RMM, or libtorch's. Call this before fanout uses memory of the GPU. Borrows the allocator until the process ends,
/// since tensors may outlive main(). fanout calls it with the GPU as the current device. When it throws std::bad_alloc,
/// fanout gives back what it keeps and tries again. Then it throws OutOfMemory. Other exceptions pass through.
///
/// nccl_collectives() needs an allocator that gives the other GPUs access to its memory.
///
/// Throws Error if fanout has allocated memory on the GPU before, or if the GPU has an allocator already. Throws
/// InvalidDeviceId if there is no such GPU. Does not wait.
template <StreamAllocator A>
void use_allocator(A& allocator, GpuIndex device = {}) {
  detail::set_source(device.gpu(), {[](void* of, std::size_t bytes, cudaStream_t stream) -> void* {
                                      return static_cast<A*>(of)->allocate(bytes, stream);
                                    },
                                    [](void* of, void* data, std::size_t bytes, cudaStream_t stream) noexcept {
                                      static_cast<A*>(of)->deallocate(data, bytes, stream);
                                    },
                                    &allocator});
}

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/allocator.ipp>
#endif
