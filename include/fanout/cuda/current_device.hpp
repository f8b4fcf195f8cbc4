// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/driver.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// The index of the calling thread's current device; 0 until the thread sets another one. Starts CUDA, but makes no
/// context. Throws InvalidDeviceId, `No CUDA GPUs are available`, if there is none.
inline int current_device() { return detail::current_index(); }

/// Makes a GPU the calling thread's current device until another one is set. Makes the GPU's context at first use.
/// Prefer a DeviceGuard, which restores the previous device. Throws InvalidDeviceId, also for a negative index, and
/// CudaError.
inline void set_device(GpuIndex device) {
  detail::GpuState& gpu = device.gpu();
  gpu.require();
  check(::cudaSetDevice(gpu.index()), "cudaSetDevice", gpu.index());
}

/// Waits until all work of this process on a GPU is done, in all streams of all threads. Does nothing if the process
/// has not used the GPU. Throws CudaError or DeviceLost if any of the work failed, and InvalidDeviceId.
FANOUT_INLINE void synchronize(GpuIndex device = {});

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/current_device.ipp>
#endif
