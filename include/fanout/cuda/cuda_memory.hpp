// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/downloads.hpp>
#include <fanout/cuda/transfer/enqueue_copy.hpp>
#include <fanout/cuda/transfer/peer_reads.hpp>
#include <fanout/cuda/transfer/transfer.hpp>
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

inline void* allocate_on_gpu(const MemorySpace& space, std::size_t bytes) {
  DeviceStreams& streams = streams_for(space);
  void* const data = allocate_in(streams.compute(), bytes);
  try {
    settle(streams);
  } catch (...) {
    release_in(streams.compute(), data);
    throw;
  }
  return data;
}

/// If there are several devices, on this GPU or on others, allocates in a stream without work and waits for that. So
/// any of them may use the memory, and none waits for another one.
inline void* allocate_for_all_on_gpu(const MemorySpace& space, std::size_t bytes) {
  GpuState& gpu = gpu_at(space.owner.index);
  if (!has_several_devices()) return allocate_on_gpu(space, bytes);
  const StreamRef stream = streams_of(gpu, DeviceStreams::allocations).compute();
  void* const data = allocate_in(stream, bytes);
  try {
    stream.synchronize();
  } catch (...) {
    release_in(stream, data);
    throw;
  }
  return data;
}

/// Releases memory in order with the work of the device that the thread has entered. That may be another device than
/// the one that used the memory, for example if a caller drops a result. No order is needed then: a call returns, and a
/// shard ends, only when its device's work is done.
inline void release_on_gpu(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept {
  GpuState* gpu = gpus[space.owner.index].gpu.load(fanout::detail::MemoryOrder::acquire);
  if (data == nullptr || gpu == nullptr || !gpu->usable()) return;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      const StreamRef stream = current_streams(*gpu).compute();
      await_peer_reads(*gpu, stream, data, bytes);
      return release_in(stream, data);
    } catch (...) {
      // The first use of these streams failed, so there is no stream to release in, or the stream could not wait for
      // those that read the memory. Tried again, since nobody releases the memory later.
    }
  }
}

/// Copies within the GPU's memory, without waiting.
inline void copy_inside(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  await_peer_reads(streams.gpu(), streams.compute(), to, bytes);
  enqueue_copy(streams.compute(), to, from, bytes, cudaMemcpyDeviceToDevice);
}

inline void copy_on_gpu(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  copy_inside(streams, to, from, bytes);
  settle(streams);
}

inline void clear_on_gpu(const MemorySpace& space, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  DeviceStreams& streams = streams_for(space);
  const StreamRef compute = streams.compute();
  await_peer_reads(streams.gpu(), compute, data, bytes);
  {
    const OnGpu entered(streams.gpu());
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
  } else {
    DeviceStreams& streams = streams_for(to);
    await_peer_reads(streams.gpu(), streams.copies(), to_data, bytes);
    if (from == host_memory) {
      upload(streams, to_data, from_data, bytes);
    } else {
      exchange(streams, to_data, streams_for(from), from_data, bytes);
    }
    settle(streams);
  }
}

inline void* transfer_into_gpu(const MemorySpace& to, const MemorySpace& from, const void* from_data,
                               std::size_t bytes) {
  DeviceStreams& streams = streams_for(to);
  void* const data = from == host_memory ? upload_new(streams, from_data, bytes)
                                         : exchange_new(streams, streams_for(from), from_data, bytes);
  try {
    settle(streams);
  } catch (...) {
    release_in(streams.compute(), data);
    throw;
  }
  return data;
}

/// Waits in its destructor for the streams that copy into memory that is released next, unless finish() was called.
class Pushes {
 public:
  explicit Pushes(std::size_t most) : streams_(fanout::detail::InlineArray<DeviceStreams*>::unset(most)) {}
  Pushes(const Pushes&) = delete;
  Pushes& operator=(const Pushes&) = delete;
  ~Pushes() {
    for (std::size_t i = 0; i < count_; ++i) {
      const QuietGuard entered(streams_[i]->gpu());
      if (entered.entered()) note(::cudaStreamSynchronize(streams_[i]->compute().get()), streams_[i]->gpu().index());
    }
  }

  void add(DeviceStreams& streams) noexcept {
    if (count_ == 0 || streams_[count_ - 1] != &streams) streams_[count_++] = &streams;
  }
  void finish() {
    for (std::size_t i = 0; i < count_; ++i) streams_[i]->compute().synchronize();
    count_ = 0;
  }

 private:
  fanout::detail::InlineArray<DeviceStreams*> streams_;
  std::size_t count_ = 0;
};

inline void transfer_all_with_gpus(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count) {
  if (to == host_memory) {
    fanout::detail::InlineArray<Download> copies(count, [transfers](std::size_t i) -> Download {
      return {&streams_for(transfers[i].from), transfers[i].to_data, transfers[i].from_data, transfers[i].bytes};
    });
    return Downloads(copies.data(), count).make();
  }
  DeviceStreams& streams = streams_for(to);
  Pushes pushes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const backend::Transfer& transfer = transfers[i];
    if (transfer.bytes == 0) continue;
    if (transfer.from == to) {
      copy_inside(streams, transfer.to_data, transfer.from_data, transfer.bytes);
    } else if (transfer.from == host_memory) {
      await_peer_reads(streams.gpu(), streams.copies(), transfer.to_data, transfer.bytes);
      upload(streams, transfer.to_data, transfer.from_data, transfer.bytes);
    } else {
      DeviceStreams& source = streams_for(transfer.from);
      if (push(streams, transfer.to_data, source, transfer.from_data, transfer.bytes)) pushes.add(source);
    }
  }
  pushes.finish();
  settle(streams);
}

/// False for GPUs that cannot copy directly.
inline bool send_to_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                        std::size_t bytes) {
  if (bytes == 0) return true;
  DeviceStreams& target = streams_for(to);
  DeviceStreams& source = streams_for(from);
  if (!peer_trusted(source.gpu().index(), target.gpu().index())) return false;
  push(target, to_data, source, from_data, bytes);
  return true;
}

/// Waits for what this thread has done with the GPU's memory; other threads wait for theirs. A thread that has entered
/// no device has already waited for each operation.
inline void wait_for_gpu(const MemorySpace& space) {
  if (innermost_streams != nullptr) streams_for(space).synchronize();
}

/// The tables for a GPU's memory, for parts of an OutputBuffer there, and for bytes that the caller owns.
struct CudaTables {
  static const backend::MemoryOperations memory;
  static const backend::MemoryOperations windows;
  static const backend::MemoryOperations borrowed;
};
inline constexpr backend::MemoryOperations CudaTables::memory{.allocate = &allocate_on_gpu,
                                                              .release = &release_on_gpu,
                                                              .copy = &copy_on_gpu,
                                                              .clear = &clear_on_gpu,
                                                              .fresh = &memory,
                                                              .transfer = &transfer_with_gpu,
                                                              .transfer_in = &transfer_into_gpu,
                                                              .wait = &wait_for_gpu,
                                                              .allocate_for_all = &allocate_for_all_on_gpu,
                                                              .transfer_all = &transfer_all_with_gpus,
                                                              .windows = &windows,
                                                              .borrowed = &borrowed,
                                                              .send = &send_to_gpu};
inline constexpr backend::MemoryOperations CudaTables::windows = fanout::detail::window_operations(memory);
inline constexpr backend::MemoryOperations CudaTables::borrowed = fanout::detail::borrowed_operations(memory);

}  // namespace detail

/// The operations on a GPU's memory, which comes from fanout's own pool. They are in order with the work of the
/// CudaDevice that the thread has entered. They wait until done if the thread has entered none on that GPU, or if they
/// copy to the host.
inline constexpr const backend::MemoryOperations& cuda_memory_operations = detail::CudaTables::memory;

}}}  // namespace fanout::v0::cuda
