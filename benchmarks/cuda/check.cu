// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Can this machine run anything on a GPU? Says in one sentence why not, and ends with 1.

#include <cstdio>

#include <cuda_runtime.h>

__global__ void write_seven(int* to) { *to = 7; }

int main() {
  int driver = 0;
  int runtime = 0;
  const cudaError_t asked = cudaDriverGetVersion(&driver);
  static_cast<void>(cudaRuntimeGetVersion(&runtime));
  if (asked != cudaSuccess || driver == 0) {
    std::printf("There is no NVIDIA driver that CUDA can use on this machine.\n");
    return 1;
  }
  if (driver < runtime) {
    std::printf("The driver is older than the runtime: it supports CUDA %d.%d, and the runtime is CUDA %d.%d.\n",
                driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return 1;
  }
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    std::printf("There is no GPU that CUDA can use on this machine: %s.\n",
                counted == cudaSuccess ? "the driver counts none" : cudaGetErrorString(counted));
    return 1;
  }
  for (int i = 0; i < count; ++i) {
    int* there = nullptr;
    int here = 0;
    cudaError_t status = cudaSetDevice(i);
    if (status == cudaSuccess) status = cudaMalloc(&there, sizeof(int));
    if (status == cudaSuccess) {
      write_seven<<<1, 1>>>(there);
      status = cudaGetLastError();
    }
    if (status == cudaSuccess) status = cudaMemcpy(&here, there, sizeof(int), cudaMemcpyDeviceToHost);
    if (status != cudaSuccess || here != 7) {
      std::printf("GPU %d runs no kernel: %s.\n", i,
                  status == cudaSuccess ? "its result is wrong" : cudaGetErrorString(status));
      return 1;
    }
    static_cast<void>(cudaFree(there));
  }
  std::printf("%d %s, driver for CUDA %d.%d, runtime %d.%d.\n", count, count == 1 ? "GPU" : "GPUs", driver / 1000,
              driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}
