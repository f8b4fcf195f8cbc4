// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Leaves the fault behind that FANOUT_STAND_IN_FAULT names: the stand-in must say so when the program ends.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

int main() {
  const char* const named = std::getenv("FANOUT_STAND_IN_FAULT");
  const std::string fault = named == nullptr ? "" : named;
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
  if (fault != "stream" && cudaStreamDestroy(stream) != cudaSuccess) return 1;
  void* memory = nullptr;
  if (fault == "misuse") (void)cudaStreamDestroy(stream);
  if (fault == "memory" && cudaMalloc(&memory, 10) != cudaSuccess) return 1;
  if (fault == "pinned" && cudaMallocHost(&memory, 10) != cudaSuccess) return 1;
  if (fault == "pool") {
    cudaMemPoolProps wanted{};
    wanted.allocType = cudaMemAllocationTypePinned;
    wanted.location.type = cudaMemLocationTypeDevice;
    cudaMemPool_t pool = nullptr;
    if (cudaMemPoolCreate(&pool, &wanted) != cudaSuccess) return 1;
  }
  return 0;
}
