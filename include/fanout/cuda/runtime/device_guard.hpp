// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda.h>

#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// Makes a GPU the calling thread's current device while this lives. Then the thread is as before, even if it had no
/// device yet: the GPU's context is pushed on the thread's context stack and popped again. cudaSetDevice would leave a
/// context on the GPU that it returns to.
class DeviceGuard {
 public:
  /// Makes the GPU's context at the process's first use of the GPU. Throws InvalidDeviceId, DeviceLost and CudaError.
  explicit DeviceGuard(int index) : DeviceGuard(detail::gpu_at(index)) {}
  explicit DeviceGuard(detail::GpuState& gpu) : gpu_(gpu) {
    check(detail::status_of(detail::driver().push_context(gpu.context())), "cuCtxPushCurrent", gpu.index());
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (detail::forked_after_use()) return;  // forked while the guard lived
    CUcontext popped = nullptr;
    detail::note(detail::status_of(detail::driver().pop_context(&popped)), gpu_.index());
  }

 private:
  detail::GpuState& gpu_;
};

namespace detail {

/// The same for code that must not throw: destructors, also at exit. Does nothing if the GPU was never used, is lost,
/// or belongs to the parent of a fork.
class QuietGuard {
 public:
  explicit QuietGuard(GpuState& gpu) noexcept : gpu_(gpu) {
    CUcontext context = gpu.known_context();
    if (context == nullptr || !gpu.usable()) return;
    // If the context is not entered, the caller's memory is not released, now or later. So it is tried again.
    for (int attempt = 0; attempt < 2 && !entered_ && gpu.usable(); ++attempt) {
      const CUresult result = only_driver.load(fanout::detail::MemoryOrder::acquire)->push_context(context);
      note(status_of(result), gpu.index());
      entered_ = result == CUDA_SUCCESS;
    }
  }
  QuietGuard(const QuietGuard&) = delete;
  QuietGuard& operator=(const QuietGuard&) = delete;
  ~QuietGuard() {
    CUcontext popped = nullptr;
    if (entered_)
      note(status_of(only_driver.load(fanout::detail::MemoryOrder::acquire)->pop_context(&popped)), gpu_.index());
  }

  /// True if CUDA may be called.
  bool entered() const noexcept { return entered_; }

 private:
  GpuState& gpu_;
  bool entered_ = false;
};

}  // namespace detail

}}}  // namespace fanout::v0::cuda
