// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/thread_context.hpp>

#include <optional>
#include <utility>

namespace fanout { inline namespace v0 { namespace cuda {

/// Makes a GPU the calling thread's current device while this lives. Then the thread is as before, even if it had no
/// device yet: the GPU's context is pushed on the thread's context stack and popped again. cudaSetDevice would leave a
/// context on the GPU that it returns to.
class DeviceGuard {
 public:
  /// Makes the GPU's context at the process's first use of the GPU. Throws InvalidDeviceId, DeviceLost and CudaError.
  explicit DeviceGuard(int index) : DeviceGuard(detail::gpu_at(index)) {}
  explicit DeviceGuard(detail::GpuState& gpu) : gpu_(gpu) {
    detail::push_context(gpu);
    before_ = std::exchange(detail::thread_context, {.current = &gpu});
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    detail::thread_context = before_;
    detail::pop_context(gpu_);
  }

 private:
  detail::GpuState& gpu_;
  detail::ThreadContext before_;
};

namespace detail {

/// Makes a GPU the current device, unless it is already. Returns true if its context must be popped again. Throws
/// DeviceLost and CudaError.
FANOUT_INLINE bool enter_gpu(GpuState& gpu);

/// Makes a GPU the current device while this lives, unless it is already. For calls of CUDA that take a stream or a
/// pool of that GPU. Code that makes streams or events uses DeviceGuard: it depends on the current device alone, and
/// what runs between enter() and its end may have set another one.
class OnGpu {
 public:
  /// Throws DeviceLost and CudaError.
  explicit OnGpu(GpuState& gpu) : gpu_(gpu), before_(thread_context.current) {
    gpu.require();
    pushed_ = enter_gpu(gpu);
  }
  explicit OnGpu(int index) : OnGpu(gpu_at(index)) {}
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;
  ~OnGpu() {
    if (!pushed_) return;
    thread_context.current = before_;
    pop_context(gpu_);
  }

 private:
  GpuState& gpu_;
  const GpuState* const before_;
  bool pushed_ = false;
};

/// Calls CUDA with any current device, so that it need not be changed: `call()` returns a status. Only the given GPU's
/// device is made current if the thread has none, since CUDA would take GPU 0. Right for events, and for copies in a
/// given stream (CUDA C++ Programming Guide, "Stream and Event Behavior"). May call twice: if the current device is
/// lost, its error must not be taken for this GPU's. Throws DeviceLost, if this GPU is known to be lost, and CudaError.
template <class Call>
cudaError_t on_any_gpu(GpuState& gpu, const Call& call) {
  gpu.require();
  if (thread_context.current != &gpu && thread_context.has_any()) {
    const cudaError_t status = call();
    if (!is_sticky(status)) [[likely]]
      return status;
    static_cast<void>(::cudaGetLastError());
  }
  const OnGpu entered(gpu);
  return call();
}

/// OnGpu for code that must not throw: destructors, also at exit. Does nothing if the GPU was never used, is lost, or
/// belongs to the parent of a fork.
class QuietGuard {
 public:
  FANOUT_INLINE explicit QuietGuard(GpuState& gpu) noexcept;

  /// True if CUDA may be called.
  bool entered() const noexcept { return entered_.has_value(); }

 private:
  std::optional<OnGpu> entered_;
};

}  // namespace detail

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/device_guard.ipp>
#endif
