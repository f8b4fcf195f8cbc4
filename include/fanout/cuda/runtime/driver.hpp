// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The driver functions that the runtime API does not offer: they make a GPU's context and put it on the thread's
/// context stack. Their addresses come from the runtime, so that nothing links libcuda, which machines without a GPU
/// lack.
struct Driver {
  CUresult(CUDAAPI* get_device)(CUdevice*, int);
  CUresult(CUDAAPI* retain_primary_context)(CUcontext*, CUdevice);
  CUresult(CUDAAPI* primary_context_state)(CUdevice, unsigned*, int*);
  CUresult(CUDAAPI* push_context)(CUcontext);
  CUresult(CUDAAPI* pop_context)(CUcontext*);
  CUresult(CUDAAPI* current_context)(CUcontext*);
};

/// Driver and runtime statuses have the same numbers.
inline cudaError_t status_of(CUresult result) noexcept { return static_cast<cudaError_t>(result); }

template <class Function>
void find_in_driver(const char* name, Function& function) {
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
  function = reinterpret_cast<Function>(address);
}

[[gnu::visibility("default")]] inline fanout::detail::Atomic<const Driver*> only_driver{nullptr};

/// The driver functions, looked up at first use and never destroyed. Not a function-local static: if a process forks
/// while one is initialised, the child would wait for it forever. Throws CudaError.
inline const Driver& driver() {
  const Driver* driver = only_driver.load(fanout::detail::MemoryOrder::acquire);
  if (driver == nullptr) [[unlikely]] {
    Driver found{};
    find_in_driver("cuDeviceGet", found.get_device);
    find_in_driver("cuDevicePrimaryCtxRetain", found.retain_primary_context);
    find_in_driver("cuDevicePrimaryCtxGetState", found.primary_context_state);
    find_in_driver("cuCtxPushCurrent", found.push_context);
    find_in_driver("cuCtxPopCurrent", found.pop_context);
    find_in_driver("cuCtxGetCurrent", found.current_context);
    const auto* made = new Driver(found);
    if (only_driver.compare_exchange_strong(driver, made, fanout::detail::MemoryOrder::acq_rel)) return *made;
    delete made;
  }
  return *driver;
}

}}}  // namespace fanout::v0::cuda::detail
