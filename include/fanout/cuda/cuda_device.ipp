// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/cuda_device.hpp>

#include <string>

#include <fanout/base/error.hpp>
#include <fanout/worker/cores.hpp>

namespace fanout { inline namespace v0 {

cuda::detail::GpuState& CudaDevice::valid(int index, int instance) {
  cuda::detail::GpuState& gpu = cuda::detail::gpu_at(index);
  static_cast<void>(detail::pinning_allowed());  // here, since streams are also made where nothing may throw
  if (instance >= 0) return gpu;
  throw InvalidDeviceId(explain({.what = "Invalid device id",
                                 .expected = "an instance number that is not negative",
                                 .found = std::to_string(instance)}));
}

}}  // namespace fanout::v0
