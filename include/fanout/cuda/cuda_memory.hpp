// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/enqueue_copy.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/transfer/downloads.hpp>
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

/// Calls `release()`, and once more if it throws: nobody releases the memory later.
template <class Release>
void release_at_last(const Release& release) noexcept {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return release();
    } catch (...) {  // CUDA's status is noted
    }
  }
}

FANOUT_INLINE void* allocate_on_gpu(const MemorySpace& space, std::size_t bytes);
FANOUT_INLINE void* allocate_and_settle(DeviceStreams& streams, std::size_t bytes);

/// If there are several devices, on this GPU or on others, allocates in a stream without work and waits for that. So
/// any of them may use the memory, and none waits for another one.
FANOUT_INLINE void* allocate_for_all_on_gpu(const MemorySpace& space, std::size_t bytes);

/// Releases memory in order with the work of the device that the thread has entered. That may be another device than
/// the one that used the memory, for example if a caller drops a result. No order is needed then: a call returns, and a
/// shard ends, only when its device's work is done. So the memory is kept for the next result of its size.
FANOUT_INLINE void release_on_gpu(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept;

/// Copies within the GPU's memory, without waiting.
inline void copy_inside(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  await_peer_reads(streams.gpu(), streams.compute(), to, bytes);
  enqueue_copy(streams.compute(), to, from, bytes, cudaMemcpyDeviceToDevice);
}

FANOUT_INLINE void copy_on_gpu(const MemorySpace& space, void* to, const void* from, std::size_t bytes);

FANOUT_INLINE void clear_on_gpu(const MemorySpace& space, void* data, std::size_t bytes);

FANOUT_INLINE void transfer_with_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from,
                                     const void* from_data, std::size_t bytes);

FANOUT_INLINE void* transfer_into_gpu(const MemorySpace& to, const MemorySpace& from, const void* from_data,
                                      std::size_t bytes);

/// Waits in its destructor for the streams that copy into memory that is released next, unless finish() was called.
class Pushes {
 public:
  explicit Pushes(std::size_t most) : streams_(fanout::detail::InlineArray<DeviceStreams*>::unset(most)) {}
  Pushes(const Pushes&) = delete;
  Pushes& operator=(const Pushes&) = delete;
  FANOUT_INLINE ~Pushes();

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

FANOUT_INLINE void transfer_all_with_gpus(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count);

/// To the host, only arrays in the parcel of the shard that this thread runs can be sent. To another GPU, all arrays if
/// the two GPUs can copy directly.
FANOUT_INLINE bool can_send_from_gpu(const MemorySpace& to, const MemorySpace& from, const void* data,
                                     std::size_t bytes);
FANOUT_INLINE void send_from_gpu(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                                 std::size_t bytes);

// Scratch memory of shards: small arrays are in parcels.

/// The parcel for the shard that this thread runs. Null if the thread entered a device of another GPU last, or if all
/// parcels are in use.
FANOUT_INLINE Parcel* parcel_on(const MemorySpace& space);
/// The parcel whose memory on the GPU contains the array. Null for arrays with memory of their own.
FANOUT_INLINE Parcel* parcel_of(const MemorySpace& space, const void* array) noexcept;

FANOUT_INLINE void* allocate_scratch_on_gpu(const MemorySpace& space, std::size_t bytes);
FANOUT_INLINE void* transfer_into_scratch_on_gpu(const MemorySpace& to, const MemorySpace& from, const void* from_data,
                                                 std::size_t bytes);
FANOUT_INLINE void release_scratch_on_gpu(const MemorySpace& space, void* data, std::size_t bytes, void*) noexcept;

/// Waits for what this thread has done with the GPU's memory; other threads wait for theirs. A thread that has entered
/// no device has already waited for each operation.
inline void wait_for_gpu(const MemorySpace& space) {
  if (innermost_streams != nullptr) streams_for(space).synchronize();
}

/// The tables for a GPU's memory, for scratch memory, for parts of an OutputBuffer there, and for bytes that the caller
/// owns.
struct CudaTables {
  static const backend::MemoryOperations memory;
  static const backend::MemoryOperations scratch;
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
                                                              .scratch = &scratch,
                                                              .can_send = &can_send_from_gpu,
                                                              .send = &send_from_gpu};
inline constexpr backend::MemoryOperations CudaTables::scratch = [] {
  backend::MemoryOperations scratch = memory;
  scratch.allocate = &allocate_scratch_on_gpu;
  scratch.release = &release_scratch_on_gpu;
  scratch.fresh = &CudaTables::scratch;
  scratch.transfer_in = &transfer_into_scratch_on_gpu;
  return scratch;
}();
inline constexpr backend::MemoryOperations CudaTables::windows = fanout::detail::window_operations(memory);
inline constexpr backend::MemoryOperations CudaTables::borrowed = fanout::detail::borrowed_operations(memory);

}  // namespace detail

/// The operations on a GPU's memory, which comes from fanout's own pool. They are in order with the work of the
/// CudaDevice that the thread has entered. They wait until done if the thread has entered none on that GPU, or if they
/// copy to the host.
inline constexpr const backend::MemoryOperations& cuda_memory_operations = detail::CudaTables::memory;

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/cuda_memory.ipp>
#endif
