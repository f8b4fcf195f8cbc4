// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda { namespace detail {

bool is_sticky(cudaError_t status) noexcept {
  switch (static_cast<int>(status)) {  // not the enumeration, which lacks some of these in older toolkits
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case error_contained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case error_tensor_memory_leak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

int resolve_gpu(int gpu) noexcept {
  if (gpu != current_gpu) return gpu;
  int index = -1;
  if (::cudaGetDevice(&index) != cudaSuccess) index = -1;
  return index;
}

void note(cudaError_t status, int gpu) noexcept {
  if (status == cudaSuccess || status == cudaErrorCudartUnloading) return;
  static_cast<void>(::cudaGetLastError());
  if (!is_sticky(status)) return;
  gpu = resolve_gpu(gpu);
  int unknown = cudaSuccess;
  if (gpu >= 0 && gpu < most_gpus) losses[gpu].code.compare_exchange_strong(unknown, status);
}

void throw_lost(cudaError_t status, const char* call, int gpu) {
  throw DeviceLost(
      explain({.what = "device " + name_of_gpu(gpu) + " is lost: " + text_of(status),
               .where = call,
               .advice = status == cudaErrorContextIsDestroyed
                             ? "cudaDeviceReset() destroys all that fanout has on a GPU: call it only when "
                               "the process ends"
                             : "the process must be restarted to use it again"}),
      status, gpu);
}

void refuse(cudaError_t status, const char* call, int gpu) {
  gpu = resolve_gpu(gpu);
  note(status, gpu);
  if (is_sticky(status)) throw_lost(status, call, gpu);
  if (status == cudaErrorMemoryAllocation) {
    throw OutOfMemory(explain({.what = "out of memory of " + name_of_gpu(gpu),
                               .where = call,
                               .advice = "use smaller batches, or fanout::cuda::empty_cache()"}));
  }
  const bool captured = status == cudaErrorStreamCaptureUnsupported || status == cudaErrorStreamCaptureImplicit;
  throw CudaError(explain({.what = "CUDA error on " + name_of_gpu(gpu) + ": " + text_of(status),
                           .where = call,
                           .advice = captured ? "capture a graph in cudaStreamCaptureModeThreadLocal, on a thread that "
                                                "does not use fanout meanwhile"
                                              : ""}),
                  status);
}

void refuse_lost(int gpu) {
  if (gpu < 0 || gpu >= most_gpus) return;
  const auto code = static_cast<cudaError_t>(losses[gpu].code.load(fanout::detail::MemoryOrder::acquire));
  if (code != cudaSuccess) [[unlikely]]
    throw_lost(code, "an earlier call", gpu);
}

}}}}  // namespace fanout::v0::cuda::detail
