// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#if defined(__has_include)
#if __has_include(<sanitizer/lsan_interface.h>)
#include <sanitizer/lsan_interface.h>
#endif
#endif

#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/device/launcher.hpp>

/// "Kernels" for the stand-in of the CUDA runtime, whose device memory is the host's: in order with the stream, by a
/// thread of its.
template <>
struct fanout::backend::Launcher<fanout::CudaDevice> {
  template <class F>
  static void launch(const CudaDevice& device, std::size_t n, const F& f) {
    struct Call {
      std::size_t n;
      F f;
      static void run(void* what) {
        auto* call = static_cast<Call*>(what);
        for (std::size_t i = 0; i < call->n; ++i) call->f(i);
        delete call;
      }
    };
    auto* call = new Call{n, f};
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
    __lsan_ignore_object(call);  // a GPU that is lost never makes it
#endif
#endif
    const cudaError_t status = ::cudaLaunchHostFunc(device.stream().get(), &Call::run, call);
    if (status != cudaSuccess) delete call;
    cuda::check(status, "cudaLaunchHostFunc", device.index());
  }
};
