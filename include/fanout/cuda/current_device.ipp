// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/current_device.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

void synchronize(GpuIndex device) {
  detail::GpuState& gpu = device.gpu();
  gpu.require();
  const detail::Driver& driver = detail::driver();
  int handle = 0;
  unsigned flags = 0;
  int active = 0;
  check(detail::status_of(driver.get_device(&handle, gpu.index())), "cuDeviceGet", gpu.index());
  check(detail::status_of(driver.primary_context_state(handle, &flags, &active)), "cuDevicePrimaryCtxGetState",
        gpu.index());
  if (active == 0) return;
  const DeviceGuard on_gpu(gpu);
  check(::cudaDeviceSynchronize(), "cudaDeviceSynchronize", gpu.index());
}

}}}  // namespace fanout::v0::cuda
