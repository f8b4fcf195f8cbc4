// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What programs compiled by nvcc need to link and to start. Kernels cannot run here.
#include "call.hpp"

using namespace stand_in;

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int) {}
char __cudaInitModule(void**) { return 1; }

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local Configuration pushed;

cudaError_t no_kernel(const char* name, cudaStream_t handle) {
  return call(name, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (stream->device != current_or_chosen()) {
      entry.wrong("the stream is of " + device_text(stream->device) + ", but " + device_text(current_or_chosen()) +
                  " is current");
      return cudaErrorInvalidResourceHandle;
    }
    return cudaErrorNoKernelImageForDevice;
  });
}

}  // namespace

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return no_kernel("cudaLaunchKernel", stream);
}

cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t stream) {
  return no_kernel(__func__, stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) {
  return call(__func__, context, [](Call&) { return cudaErrorNoKernelImageForDevice; });
}

}  // extern "C"
