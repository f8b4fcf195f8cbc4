// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Enqueues a copy in a stream. Throws DeviceLost and CudaError.
inline void enqueue_copy(StreamRef stream, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  check(on_any_gpu(gpu_at(stream.device()), [&] { return ::cudaMemcpyAsync(to, from, bytes, kind, stream.get()); }),
        "cudaMemcpyAsync", stream.device());
}

/// The same from one GPU to another one. The stream is of one of them.
FANOUT_INLINE void enqueue_peer_copy(StreamRef stream, void* to, int to_gpu, const void* from, int from_gpu,
                                     std::size_t bytes);

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/enqueue_copy.ipp>
#endif
