// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

// These ask the runtime, which starts CUDA in the process, but make no context on any card.

/// Whether there is a CUDA device that the process may use. Never throws. False without a driver, without a card, and
/// in the child of a process that had used CUDA before it forked.
inline bool is_available() noexcept { return detail::count_cards().count > 0; }

/// How many CUDA devices the process may use: those that CUDA_VISIBLE_DEVICES leaves, which are numbered from 0. 0
/// where is_available() is false. Never throws. Once it is above 0 it does not change; before that it is asked anew
/// each time.
inline int device_count() noexcept { return detail::count_cards().count; }

/// Why is_available() is false, in words; empty if it is true.
inline std::string unavailable_reason() {
  if (detail::forked_after_use()) return "Cannot re-initialize CUDA in forked subprocess: the parent had used it";
  const detail::CardCount cards = detail::count_cards();
  if (cards.count > 0) return {};
  std::string reason = detail::text_of_absence(cards.status);
  if (cards.status != cudaErrorNoDevice) return reason;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    reason += std::string("; CUDA_VISIBLE_DEVICES is \"") + visible + '"';
  }
  return reason;
}

}}}  // namespace fanout::v0::cuda
