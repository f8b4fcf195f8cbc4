// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/enqueue_copy.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void enqueue_peer_copy(StreamRef stream, void* to, int to_gpu, const void* from, int from_gpu, std::size_t bytes) {
  check(on_any_gpu(gpu_at(stream.device()),
                   [&] { return ::cudaMemcpyPeerAsync(to, to_gpu, from, from_gpu, bytes, stream.get()); }),
        "cudaMemcpyPeerAsync", stream.device());
}

}}}  // namespace fanout::v0::cuda::detail
