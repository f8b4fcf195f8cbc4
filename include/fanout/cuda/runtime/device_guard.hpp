// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda.h>

#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// A card is the calling thread's current device for as long as this lives. Afterwards the thread is as it was, also if
/// it had no device yet: the card's context is pushed on the thread's stack of contexts and popped again, where
/// cudaSetDevice would leave a context behind on the card that it returns to.
class DeviceGuard {
 public:
  /// Makes the card's context if it is the process's first use of the card. Throws InvalidDeviceId, DeviceLost and
  /// CudaError.
  explicit DeviceGuard(int index) : DeviceGuard(detail::card_at(index)) {}
  explicit DeviceGuard(detail::Card& card) : card_(card) {
    check(detail::status_of(detail::driver().push_context(card.context())), "cuCtxPushCurrent", card.index());
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (detail::forked_after_use()) return;  // the child of a fork within the guard
    CUcontext popped = nullptr;
    detail::note(detail::status_of(detail::driver().pop_context(&popped)), card_.index());
  }

 private:
  detail::Card& card_;
};

namespace detail {

/// The same where nothing may be thrown: in destructors, also while the process ends. Does nothing on a card that was
/// never used, that is lost, or that belongs to the parent of a fork.
class QuietGuard {
 public:
  explicit QuietGuard(Card& card) noexcept : card_(card) {
    CUcontext context = card.known_context();
    if (context == nullptr || !card.usable()) return;
    // What is not entered is not given back, and nobody comes to do it later: so it is tried again.
    for (int attempt = 0; attempt < 2 && !entered_ && card.usable(); ++attempt) {
      const CUresult result = only_driver.load(fanout::detail::MemoryOrder::acquire)->push_context(context);
      note(status_of(result), card.index());
      entered_ = result == CUDA_SUCCESS;
    }
  }
  QuietGuard(const QuietGuard&) = delete;
  QuietGuard& operator=(const QuietGuard&) = delete;
  ~QuietGuard() {
    CUcontext popped = nullptr;
    if (entered_)
      note(status_of(only_driver.load(fanout::detail::MemoryOrder::acquire)->pop_context(&popped)), card_.index());
  }

  /// Whether calls may be made.
  bool entered() const noexcept { return entered_; }

 private:
  Card& card_;
  bool entered_ = false;
};

}  // namespace detail

}}}  // namespace fanout::v0::cuda
