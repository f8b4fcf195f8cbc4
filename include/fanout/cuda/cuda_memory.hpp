// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/card.hpp>
#include <fanout/cuda/device_guard.hpp>
#include <fanout/cuda/lane.hpp>
#include <fanout/cuda/memory_pool.hpp>
#include <fanout/cuda/status.hpp>
#include <fanout/cuda/stream.hpp>
#include <fanout/cuda/transfer.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/memory/output_buffer.hpp>

namespace fanout::inline v0::cuda {

namespace detail {

/// The lane in order with whose work the thread uses this memory.
inline Lane& lane_for(const MemorySpace& space) { return current_lane(card_at(space.owner.index)); }

inline void* allocate_on_card(const MemorySpace& space, std::size_t bytes) {
  return allocate_in(lane_for(space).compute(), bytes);
}

/// Gives memory back in order with the work of the lane that the thread has entered. If that is another one than the
/// lane that used the memory, as where a caller drops a result, there is nothing to be in order with: a call returns,
/// and a shard ends, when its lane has done its work, so that who got hold of the memory elsewhere got it complete.
inline void release_on_card(const MemorySpace& space, void* data, std::size_t, void*) noexcept {
  Card* card = cards[space.owner.index].card.load(MemoryOrder::acquire);
  if (data == nullptr || card == nullptr || !card->usable()) return;
  try {
    release_in(current_lane(*card).compute(), data);
  } catch (...) {
    // The first use of a lane, and it failed. Nothing can be given back in an order that does not exist.
  }
}

inline void copy_on_card(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  const StreamRef compute = lane_for(space).compute();
  const DeviceGuard entered(compute.device());
  check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute.get()), "cudaMemcpyAsync",
        compute.device());
}

inline void clear_on_card(const MemorySpace& space, void* data, std::size_t bytes) {
  if (bytes == 0) return;
  const StreamRef compute = lane_for(space).compute();
  const DeviceGuard entered(compute.device());
  check(::cudaMemsetAsync(data, 0, bytes, compute.get()), "cudaMemsetAsync", compute.device());
}

inline void transfer_with_card(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                               std::size_t bytes) {
  if (bytes == 0) return;
  if (to == from) {
    copy_on_card(to, to_data, from_data, bytes);
  } else if (to == host_memory) {
    download(lane_for(from), to_data, from_data, bytes);
  } else if (from == host_memory) {
    upload(lane_for(to), to_data, from_data, bytes);
  } else {
    exchange(lane_for(to), to_data, lane_for(from), from_data, bytes);
  }
}

inline void* bring_to_card(const MemorySpace& to, const void* from_data, std::size_t bytes) {
  return upload_new(lane_for(to), from_data, bytes);
}

/// What the thread does next may have been put in any of the card's lanes, unless it has entered one.
inline void wait_for_card(const MemorySpace& space) {
  Card& card = card_at(space.owner.index);
  for (const EnteredLane* entered = innermost_lane; entered != nullptr; entered = entered->outer()) {
    if (&entered->lane().card() == &card) return entered->lane().synchronize();
  }
  for (Lane* lane = card.lanes().load(MemoryOrder::acquire); lane != nullptr; lane = lane->next()) lane->synchronize();
}

/// The table of a card's memory, and that of parts of an OutputBuffer there; each names the other.
struct CudaTables {
  static const MemoryOperations memory;
  static const MemoryOperations windows;
};
inline constexpr MemoryOperations CudaTables::memory{&allocate_on_card, &release_on_card, &copy_on_card,
                                                     &clear_on_card,    &memory,          &transfer_with_card,
                                                     &bring_to_card,    &wait_for_card,   &windows};
inline constexpr MemoryOperations CudaTables::windows = fanout::detail::window_operations(memory);

}  // namespace detail

/// What can be done with the memory of a card, which comes from a pool of fanout's own. All of it happens in order with
/// the work of the CudaDevice that the thread has entered, or of the card's first; copies to the host have happened
/// when they return.
inline constexpr const MemoryOperations& cuda_memory_operations = detail::CudaTables::memory;

}  // namespace fanout::inline v0::cuda
