// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <compare>
#include <string>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_index.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

// None of these makes a context. All throw InvalidDeviceId, `Invalid device id`, for a device that is not visible.

/// The compute capability of a GPU: 9 and 0 are sm_90.
struct Capability {
  int major = 0;
  int minor = 0;

  friend bool operator==(const Capability&, const Capability&) = default;  // nvcc derives none from <=>
  friend auto operator<=>(const Capability&, const Capability&) = default;
};

/// The runtime's properties of a GPU. Asked once, then cached until the process ends; the reference stays valid.
inline const cudaDeviceProp& device_properties(GpuIndex device = {}) { return device.gpu().properties(); }

/// The name of the GPU: `NVIDIA H100 80GB HBM3`.
inline std::string device_name(GpuIndex device = {}) { return device_properties(device).name; }

/// The compute capability of the GPU.
inline Capability device_capability(GpuIndex device = {}) {
  const cudaDeviceProp& properties = device_properties(device);
  return {.major = properties.major, .minor = properties.minor};
}

/// True if the hardware lets a GPU read a peer's memory. A GPU is no peer of itself. It does not say if copies arrive
/// intact: see peer_trusted(). Throws InvalidDeviceId, with `Invalid peer device id` for the second.
FANOUT_INLINE bool can_access_peer(GpuIndex device, GpuIndex peer);

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/device_info.ipp>
#endif
