// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that a kernel may be handed. Compiled wherever there is an nvcc; run where there is a GPU.
#include <doctest/doctest.h>

#include <cuda_runtime_api.h>

#include <vector>

#include <fanout/array/view.hpp>
#include <fanout/context/random_stream.hpp>

#include "support/skip.hpp"

namespace {

__global__ void add_noise(fanout::View<float, 2> output, fanout::View<const float, 2> input, std::uint64_t seed) {
  for (std::size_t i = threadIdx.x; i < input.extent(0); i += blockDim.x) {
    fanout::RandomStream random(seed, 0, i);
    for (std::size_t k = 0; k < input.extent(1); ++k) {
      output.rows({i, i + 1})(0, k) = input.row(i)[k] + static_cast<float>(random.uniform());
    }
  }
}

}  // namespace

TEST_CASE("views and random numbers work in kernels as on the host") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return fanout_test::skip("no CUDA device");
  std::vector<float> input(12, 0.5F), output(12);
  float* memory = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&memory), 24 * sizeof(float)) == cudaSuccess);
  REQUIRE(cudaMemcpy(memory, input.data(), 12 * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
  add_noise<<<1, 32>>>(fanout::View<float, 2>(memory + 12, 4, 3), fanout::View<const float, 2>(memory, 4, 3), 7);
  REQUIRE(cudaGetLastError() == cudaSuccess);
  REQUIRE(cudaMemcpy(output.data(), memory + 12, 12 * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
  REQUIRE(cudaFree(memory) == cudaSuccess);
  for (std::size_t i = 0; i < 4; ++i) {
    fanout::RandomStream random(7, 0, i);
    for (std::size_t k = 0; k < 3; ++k) CHECK(output[3 * i + k] == 0.5F + static_cast<float>(random.uniform()));
  }
}
