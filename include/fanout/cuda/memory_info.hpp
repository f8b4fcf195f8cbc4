// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/card_index.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

// Numbers are bytes. All throw InvalidDeviceId, `Invalid device id`, for a device that is not visible, and CudaError.

/// A card's memory: what is free of it, and all that it has.
using MemoryInfo = detail::MemoryInfo;

/// Of the whole card, with what other processes use of it. Makes the card's context if it is the process's first use of
/// the card: CUDA does not tell otherwise.
inline MemoryInfo memory_info(CardIndex device = {}) { return detail::memory_info_of(device.card()); }

// These tell of fanout's own pool of the card's memory in this process. They make no context: on a card that was not
// used all are 0, and nothing is done. What was released counts as allocated until the work that stood before it is
// done.

/// What tensors, buffers and the like hold now.
inline std::size_t memory_allocated(CardIndex device = {}) { return detail::pool_use(device.card()).allocated; }

/// The most that they ever held, or since reset_peak_memory().
inline std::size_t max_memory_allocated(CardIndex device = {}) {
  return detail::pool_use(device.card()).most_allocated;
}

/// What the pool holds of the card's memory: what is allocated, and what it keeps for later.
inline std::size_t memory_reserved(CardIndex device = {}) { return detail::pool_use(device.card()).reserved; }

/// From now on max_memory_allocated() is the most that is held from now on.
inline void reset_peak_memory(CardIndex device = {}) { detail::reset_peaks(device.card()); }

/// Gives what the pool keeps for later back to the card, so that others can have it. Allocated memory stays, and fanout
/// gains none. Waits for all work of the card. Throws DeviceLost and CudaError.
inline void empty_cache(CardIndex device) { detail::trim_pool(device.card()); }

/// The same on all cards that the process has used.
inline void empty_cache() {
  for (int i = 0; i < detail::count_cards().count; ++i) detail::trim_pool(detail::card_at(i));
}

}}}  // namespace fanout::v0::cuda
