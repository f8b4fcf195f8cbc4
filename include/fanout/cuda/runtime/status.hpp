// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/annotate.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// A call of the CUDA runtime or driver that failed, or work on a card that did.
class FANOUT_EXPORT CudaError : public Error {
 public:
  CudaError(const std::string& text, cudaError_t code) : Error(text), code_(code) {}

  /// What CUDA returned, and how it calls it: `cudaErrorInvalidValue`.
  cudaError_t code() const noexcept { return code_; }
  const char* name() const noexcept { return ::cudaGetErrorName(code_); }

 private:
  cudaError_t code_;
};

/// A card on which work failed in a way that no call of this process can mend, as a kernel that wrote where it may not.
/// All later uses of the card throw this, too, without calling CUDA.
class FANOUT_EXPORT DeviceLost : public CudaError {
 public:
  DeviceLost(const std::string& text, cudaError_t code, int index) : CudaError(text, code), index_(index) {}

  /// Which card: `index()` 1 is cuda:1.
  int index() const noexcept { return index_; }

 private:
  int index_;
};

namespace detail {

/// Cards are numbered below this. No machine has as many, and tables of one entry for each need no lock.
inline constexpr int most_cards = 128;

/// In place of a card's index: the current device of the thread.
inline constexpr int current_card = -1;

/// Why a card is lost, as a cudaError_t; cudaSuccess if it is not.
struct LossOfCard {
  fanout::detail::Atomic<int> code{cudaSuccess};
};
FANOUT_EXPORT inline LossOfCard losses[most_cards]{};

/// Whether all later calls on the card return the same: those of which CUDA's documentation says that the process must
/// be ended, memory that failed, and a context that others destroyed under us.
inline bool is_sticky(cudaError_t status) noexcept {
  switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

/// `cuda:1`, or what is said where nobody knows which.
inline std::string name_of_card(int index) {
  return index < 0 ? "a CUDA device" : to_string(DeviceId{.kind = "cuda", .index = index});
}

/// `an illegal memory access was encountered (cudaErrorIllegalAddress)`.
inline std::string text_of(cudaError_t status) {
  return std::string(::cudaGetErrorString(status)) + " (" + ::cudaGetErrorName(status) + ')';
}

/// The card's index, or that of the thread's current device, or -1 if it is not known. Makes no context.
inline int resolve_card(int card) noexcept {
  if (card != current_card) return card;
  int index = -1;
  if (::cudaGetDevice(&index) != cudaSuccess) index = -1;
  return index;
}

/// Takes a failure off the thread's list, so that no later call returns it again, and notes a card that it has lost.
/// For destructors, which cannot throw: the next use of the card does.
inline void note(cudaError_t status, int card) noexcept {
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  static_cast<void>(::cudaGetLastError());
  if (!is_sticky(status)) return;
  card = resolve_card(card);
  int unknown = cudaSuccess;
  if (card >= 0 && card < most_cards) losses[card].code.compare_exchange_strong(unknown, status);
}

[[noreturn]] inline void throw_lost(cudaError_t status, const char* call, int card) {
  throw DeviceLost(explain({.what = "device " + name_of_card(card) + " is lost: " + text_of(status),
                            .where = call,
                            .advice = "the process must be restarted to use it again"}),
                   status, card);
}

/// Throws what a failed call is as an exception.
[[noreturn]] inline void refuse(cudaError_t status, const char* call, int card) {
  card = resolve_card(card);
  note(status, card);
  if (is_sticky(status)) throw_lost(status, call, card);
  if (status == cudaErrorMemoryAllocation) {
    throw OutOfMemory(explain({.what = "out of memory of " + name_of_card(card),
                               .where = call,
                               .advice = "use smaller batches, or fanout::cuda::empty_cache()"}));
  }
  throw CudaError(explain({.what = "CUDA error on " + name_of_card(card) + ": " + text_of(status), .where = call}),
                  status);
}

/// Throws DeviceLost if the card was lost before; one load.
inline void refuse_lost(int card) {
  if (card < 0 || card >= most_cards) return;
  const auto code = static_cast<cudaError_t>(losses[card].code.load(fanout::detail::MemoryOrder::acquire));
  if (code != cudaSuccess) [[unlikely]]
    throw_lost(code, "an earlier call", card);
}

}  // namespace detail

/// Throws what a call of CUDA returned, unless it is cudaSuccess: OutOfMemory for cudaErrorMemoryAllocation, DeviceLost
/// for what no later call can mend, else CudaError. `call` names the call in the message. The error is cleared, so that
/// no later call returns it again. `card`: on which card; by default the thread's current device.
inline void check(cudaError_t status, const char* call, int card = detail::current_card) {
  if (status != cudaSuccess) [[unlikely]]
    detail::refuse(status, call, card);
}

}}}  // namespace fanout::v0::cuda
