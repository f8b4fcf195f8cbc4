// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// A call of the CUDA runtime or driver failed, or work on a GPU did.
class [[gnu::visibility("default")]] CudaError : public DeviceError {
 public:
  CudaError(const std::string& text, cudaError_t code) : DeviceError(text), code_(code) {}

  /// What CUDA returned, and CUDA's name for it: `cudaErrorInvalidValue`.
  cudaError_t code() const noexcept { return code_; }
  const char* name() const noexcept { return ::cudaGetErrorName(code_); }

 private:
  cudaError_t code_;
};

/// Work on a GPU failed in a way that this process cannot mend, for example a kernel that wrote to an invalid address.
/// All later uses of the GPU throw this too, without calling CUDA.
class [[gnu::visibility("default")]] DeviceLost : public CudaError {
 public:
  DeviceLost(const std::string& text, cudaError_t code, int index) : CudaError(text, code), index_(index) {}

  /// The index of the GPU: 1 is cuda:1.
  int index() const noexcept { return index_; }

 private:
  int index_;
};

namespace detail {

/// GPU indices are below this. No machine has as many, and tables with an entry per GPU need no lock.
inline constexpr int most_gpus = 128;

/// Stands for the thread's current device in place of an index.
inline constexpr int current_gpu = -1;

/// Why a GPU is lost, as a cudaError_t; cudaSuccess if it is not lost.
struct GpuLoss {
  fanout::detail::Atomic<int> code{cudaSuccess};
};
[[gnu::visibility("default")]] inline GpuLoss losses[most_gpus]{};

// Errors that toolkits before 12.8 do not name. A driver may be newer than the headers, and returns them then, too.
inline constexpr cudaError_t error_contained = static_cast<cudaError_t>(226);           // cudaErrorContained
inline constexpr cudaError_t error_tensor_memory_leak = static_cast<cudaError_t>(721);  // cudaErrorTensorMemoryLeak

/// True if all later calls on the GPU return the same. These are the errors after which CUDA's documentation requires
/// the process to end, memory that failed, and a context that others destroyed.
FANOUT_INLINE bool is_sticky(cudaError_t status) noexcept;

/// `cuda:1`, or `a CUDA device` if the index is unknown.
inline std::string name_of_gpu(int index) {
  return index < 0 ? "a CUDA device" : to_string(DeviceId{.kind = "cuda", .index = index});
}

/// `an illegal memory access was encountered (cudaErrorIllegalAddress)`.
inline std::string text_of(cudaError_t status) {
  return std::string(::cudaGetErrorString(status)) + " (" + ::cudaGetErrorName(status) + ')';
}

/// The index itself; for current_gpu, the thread's current device, or -1 if it is unknown. Makes no context.
FANOUT_INLINE int resolve_gpu(int gpu) noexcept;

/// Clears the thread's last CUDA error, so that no later call returns it again. Marks the GPU as lost if the error is
/// sticky. For destructors, which cannot throw: the next use of the GPU throws.
FANOUT_INLINE void note(cudaError_t status, int gpu) noexcept;

[[noreturn]] FANOUT_INLINE void throw_lost(cudaError_t status, const char* call, int gpu);

/// Throws the exception for a failed call.
[[noreturn]] FANOUT_INLINE void refuse(cudaError_t status, const char* call, int gpu);

/// Throws DeviceLost if the GPU was lost before. Costs one load.
FANOUT_INLINE void refuse_lost(int gpu);

}  // namespace detail

/// Throws if a call of CUDA did not return cudaSuccess: OutOfMemory for cudaErrorMemoryAllocation, DeviceLost for
/// sticky errors, else CudaError. `call` names the call in the message. `gpu` is the index of the GPU; by default the
/// thread's current device. Clears the thread's last CUDA error.
inline void check(cudaError_t status, const char* call, int gpu = detail::current_gpu) {
  if (status != cudaSuccess) [[unlikely]]
    detail::refuse(status, call, gpu);
}

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/status.ipp>
#endif
