// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/lane.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/runtime/transfer.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// The lane that orders this thread's use of the memory.
inline Lane& lane_for(const MemorySpace& space) { return current_lane(card_at(space.owner.index)); }

/// Waits if the thread has entered no device of the GPU: nothing else would be in order with its work.
inline void settle(Lane& lane) {
  if (lane.is_outside()) lane.compute().synchronize();
}

/// Other devices on the GPU may use the memory too, as for a result that they fill together. Their work waits for the
/// allocation.
inline void* allocate_on_card(const MemorySpace& space, std::size_t bytes) {
  Lane& lane = lane_for(space);
  void* const data = allocate_in(lane.compute(), bytes);
  try {
    if (lane.is_outside()) {
      settle(lane);
    } else {
      for (Lane* other = lane.card().lanes().load(fanout::detail::MemoryOrder::acquire); other != nullptr;
           other = other->next()) {
        if (other != &lane && !other->is_outside()) other->compute().wait(lane.compute());
      }
    }
  } catch (...) {
    release_in(lane.compute(), data);
    throw;
  }
  return data;
}

/// Releases memory in order with the work of the lane that the thread has entered. That may be another lane than the
/// one that used the memory, for example if a caller drops a result. No order is needed then: a call returns, and a
/// shard ends, only when its lane's work is done.
inline void release_on_card(const MemorySpace& space, void* data, std::size_t, void*) noexcept {
  Card* card = cards[space.owner.index].card.load(fanout::detail::MemoryOrder::acquire);
  if (data == nullptr || card == nullptr || !card->usable()) return;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      return release_in(current_lane(*card).compute(), data);
    } catch (...) {
      // The first use of this lane failed, so there is no stream to release in. Tried again, since nobody releases the
      // memory later.
    }
  }
}

inline void copy_on_card(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  Lane& lane = lane_for(space);
  const StreamRef compute = lane.compute();
  {
    const DeviceGuard entered(compute.device());
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute.get()), "cudaMemcpyAsync",
          compute.device());
  }
  settle(lane);
}

inline void clear_on_card(const MemorySpace& space, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  Lane& lane = lane_for(space);
  const StreamRef compute = lane.compute();
  {
    const DeviceGuard entered(compute.device());
    check(::cudaMemsetAsync(data, 0, bytes, compute.get()), "cudaMemsetAsync", compute.device());
  }
  settle(lane);
}

inline void transfer_with_card(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                               std::size_t bytes) {
  if (bytes == 0) return;
  if (to == from) {
    copy_on_card(to, to_data, from_data, bytes);
  } else if (to == host_memory) {
    download(lane_for(from), to_data, from_data, bytes);
  } else if (from == host_memory) {
    Lane& lane = lane_for(to);
    upload(lane, to_data, from_data, bytes);
    settle(lane);
  } else {
    Lane& lane = lane_for(to);
    exchange(lane, to_data, lane_for(from), from_data, bytes);
    settle(lane);
  }
}

inline void* bring_to_card(const MemorySpace& to, const void* from_data, std::size_t bytes) {
  Lane& lane = lane_for(to);
  void* const data = upload_new(lane, from_data, bytes);
  try {
    settle(lane);
  } catch (...) {
    release_in(lane.compute(), data);
    throw;
  }
  return data;
}

/// Waits for what this thread has done with the GPU's memory; other threads wait for theirs. A thread that has entered
/// no device has already waited for each operation.
inline void wait_for_card(const MemorySpace& space) {
  if (innermost_lane != nullptr) lane_for(space).synchronize();
}

/// The table for a GPU's memory, and the table for parts of an OutputBuffer there. Each names the other.
struct CudaTables {
  static const backend::MemoryOperations memory;
  static const backend::MemoryOperations windows;
};
inline constexpr backend::MemoryOperations CudaTables::memory{&allocate_on_card, &release_on_card, &copy_on_card,
                                                              &clear_on_card,    &memory,          &transfer_with_card,
                                                              &bring_to_card,    &wait_for_card,   &windows};
inline constexpr backend::MemoryOperations CudaTables::windows = fanout::detail::window_operations(memory);

}  // namespace detail

/// The operations on a GPU's memory, which comes from fanout's own pool. They are in order with the work of the
/// CudaDevice that the thread has entered. They wait until done if the thread has entered none on that GPU, or if they
/// copy to the host.
inline constexpr const backend::MemoryOperations& cuda_memory_operations = detail::CudaTables::memory;

}}}  // namespace fanout::v0::cuda
