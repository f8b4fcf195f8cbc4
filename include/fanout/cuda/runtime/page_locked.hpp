// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The card in whose context something is done that belongs to no card: one that is used already, so that none is only
/// for this; the card 0 of a process that has used none.
inline Card& any_card() {
  for (int i = 0; i < known_count.load(fanout::detail::MemoryOrder::acquire); ++i) {
    Card* card = cards[i].card.load(fanout::detail::MemoryOrder::acquire);
    if (card != nullptr && card->known_context() != nullptr && card->usable()) return *card;
  }
  return card_at(0);
}

/// Host memory that the system does not move, so that cards read and write it on their own, all of them. Throws
/// OutOfMemory and CudaError.
inline void* allocate_page_locked(std::size_t bytes, Card& card) {
  const DeviceGuard entered(card);
  void* data = nullptr;
  const cudaError_t status = ::cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    note(status, card.index());
    throw OutOfMemory(explain({.what = "out of page-locked host memory",
                               .expected = std::to_string(bytes) + " bytes",
                               .advice = "use fewer or smaller pinned arrays: they cannot be swapped out"}));
  }
  check(status, "cudaHostAlloc", card.index());
  return data;
}

/// Waits for nothing: who frees it knows that no card uses it any more.
inline void release_page_locked(void* data, Card& card) noexcept {
  const QuietGuard entered(card);
  if (entered.entered()) note(::cudaFreeHost(data), card.index());
}

}}}  // namespace fanout::v0::cuda::detail
