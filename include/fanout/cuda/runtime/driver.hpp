// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/sync/atomic.hpp>

struct CUctx_st;  // <cuda.h>, which has 26,000 lines, declares it so

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// CUcontext and CUresult of <cuda.h>. A CUdevice is an int.
using ContextHandle = ::CUctx_st*;
using DriverResult = unsigned;
inline constexpr DriverResult driver_invalid_context = 201;  // CUDA_ERROR_INVALID_CONTEXT

/// The driver functions that the runtime API does not offer: they make a GPU's context and put it on the thread's
/// context stack. Their addresses come from the runtime, so that nothing links libcuda, which machines without a GPU
/// lack.
struct Driver {
  DriverResult (*get_device)(int*, int);
  DriverResult (*retain_primary_context)(ContextHandle*, int);
  DriverResult (*primary_context_state)(int, unsigned*, int*);
  DriverResult (*push_context)(ContextHandle);
  DriverResult (*pop_context)(ContextHandle*);
  DriverResult (*set_context)(ContextHandle);
  DriverResult (*current_context)(ContextHandle*);
};

/// Driver and runtime statuses have the same numbers.
inline cudaError_t status_of(DriverResult result) noexcept { return static_cast<cudaError_t>(result); }

/// The same for a push of a context that was retained: if it is invalid, others have destroyed it.
inline cudaError_t status_of_push(DriverResult result) noexcept {
  return result == driver_invalid_context ? cudaErrorContextIsDestroyed : status_of(result);
}

/// The address of a driver function. Throws CudaError if the driver does not have it.
FANOUT_INLINE void* address_in_driver(const char* name);

template <class Function>
void find_in_driver(const char* name, Function& function) {
  function = reinterpret_cast<Function>(address_in_driver(name));
}

[[gnu::visibility("default")]] inline fanout::detail::Atomic<const Driver*> only_driver{nullptr};

/// The driver functions, looked up at first use and never destroyed. Not a function-local static: if a process forks
/// while one is initialised, the child would wait for it forever. Throws CudaError.
FANOUT_INLINE const Driver& driver();

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/driver.ipp>
#endif
