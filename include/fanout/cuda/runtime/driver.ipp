// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/driver.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

void* address_in_driver(const char* name) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  // All these functions are older than this version. Newer versions may have other parameters.
  check(::cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found), name);
#else
  check(::cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found), name);
#endif
  if (found != cudaDriverEntryPointSuccess || address == nullptr) {
    throw CudaError(explain({.what = "function of the CUDA driver",
                             .where = name,
                             .expected = "a driver of CUDA 12.0 or newer",
                             .found = "none of that name",
                             .advice = "update the driver"}),
                    cudaErrorSymbolNotFound);
  }
  return address;
}

const Driver& driver() {
  const Driver* driver = only_driver.load(fanout::detail::MemoryOrder::acquire);
  if (driver == nullptr) [[unlikely]] {
    Driver found{};
    find_in_driver("cuDeviceGet", found.get_device);
    find_in_driver("cuDevicePrimaryCtxRetain", found.retain_primary_context);
    find_in_driver("cuDevicePrimaryCtxGetState", found.primary_context_state);
    find_in_driver("cuCtxPushCurrent", found.push_context);
    find_in_driver("cuCtxPopCurrent", found.pop_context);
    find_in_driver("cuCtxSetCurrent", found.set_context);
    find_in_driver("cuCtxGetCurrent", found.current_context);
    const auto* made = new Driver(found);
    if (only_driver.compare_exchange_strong(driver, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *driver;
}

}}}  // namespace fanout::v0::cuda::detail
