// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/runtime/transfer.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// The streams that order this thread's use of the memory.
inline DeviceStreams& streams_for(const MemorySpace& space) { return current_streams(gpu_at(space.owner.index)); }

/// Waits if the thread has entered no device of the GPU: nothing else would be in order with its work.
inline void settle(DeviceStreams& streams) {
  if (streams.is_shared()) streams.compute().synchronize();
}

/// Other devices on the GPU may use the memory too, as for a result that they fill together. Their work waits for the
/// allocation.
inline void* allocate_on_gpu(const MemorySpace& space, std::size_t bytes) {
  DeviceStreams& streams = streams_for(space);
  void* const data = allocate_in(streams.compute(), bytes);
  try {
    if (streams.is_shared()) {
      settle(streams);
    } else {
      for (DeviceStreams* other = streams.gpu().all_streams().load(fanout::detail::MemoryOrder::acquire);
           other != nullptr; other = other->next()) {
        if (other != &streams && !other->is_shared()) other->compute().wait(streams.compute());
      }
    }
  } catch (...) {
    release_in(streams.compute(), data);
    throw;
  }
  return data;
}

/// Releases memory in order with the work of the device that the thread has entered. That may be another device than the
/// one that used the memory, for example if a caller drops a result. No order is needed then: a call returns, and a
/// shard ends, only when its device's work is done.
inline void release_on_gpu(const MemorySpace& space, void* data, std::size_t, void*) noexcept {
  GpuState* gpu = gpus[space.owner.index].gpu.load(fanout::detail::MemoryOrder::acquire);
  if (data == nullptr || gpu == nullptr || !gpu->usable()) return;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return release_in(current_streams(*gpu).compute(), data);
    } catch (...) {
      // The first use of these streams failed, so there is no stream to release in. Tried again, since nobody releases the
      // memory later.
    }
  }
}

inline void copy_on_gpu(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  const StreamRef compute = streams.compute();
  {
    const DeviceGuard entered(compute.device());
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute.get()), "cudaMemcpyAsync",
          compute.device());
  }
  settle(streams);
}

inline void clear_on_gpu(const MemorySpace& space, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  const StreamRef compute = streams.compute();
  {
    const DeviceGuard entered(compute.device());
    check(::cudaMemsetAsync(data, 0, bytes, compute.get()), "cudaMemsetAsync", compute.device());
  }
  settle(streams);
}

inline void transfer_with_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                              std::size_t bytes) {
  if (bytes == 0) return;
  if (to == from) {
    copy_on_gpu(to, to_data, from_data, bytes);
  } else if (to == host_memory) {
    download(streams_for(from), to_data, from_data, bytes);
  } else if (from == host_memory) {
    DeviceStreams& streams = streams_for(to);
    upload(streams, to_data, from_data, bytes);
    settle(streams);
  } else {
    DeviceStreams& streams = streams_for(to);
    exchange(streams, to_data, streams_for(from), from_data, bytes);
    settle(streams);
  }
}

inline void* transfer_into_gpu(const MemorySpace& to, const void* from_data, std::size_t bytes) {
  DeviceStreams& streams = streams_for(to);
  void* const data = upload_new(streams, from_data, bytes);
  try {
    settle(streams);
  } catch (...) {
    release_in(streams.compute(), data);
    throw;
  }
  return data;
}

/// Waits for what this thread has done with the GPU's memory; other threads wait for theirs. A thread that has entered
/// no device has already waited for each operation.
inline void wait_for_gpu(const MemorySpace& space) {
  if (innermost_streams != nullptr) streams_for(space).synchronize();
}

/// The table for a GPU's memory, and the table for parts of an OutputBuffer there. Each names the other.
struct CudaTables {
  static const backend::MemoryOperations memory;
  static const backend::MemoryOperations windows;
};
inline constexpr backend::MemoryOperations CudaTables::memory{&allocate_on_gpu,   &release_on_gpu, &copy_on_gpu,
                                                              &clear_on_gpu,      &memory,         &transfer_with_gpu,
                                                              &transfer_into_gpu, &wait_for_gpu,   &windows};
inline constexpr backend::MemoryOperations CudaTables::windows = fanout::detail::window_operations(memory);

}  // namespace detail

/// The operations on a GPU's memory, which comes from fanout's own pool. They are in order with the work of the
/// CudaDevice that the thread has entered. They wait until done if the thread has entered none on that GPU, or if they
/// copy to the host.
inline constexpr const backend::MemoryOperations& cuda_memory_operations = detail::CudaTables::memory;

}}}  // namespace fanout::v0::cuda
