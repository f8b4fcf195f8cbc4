// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The squares of examples/readme.cpp by libtorch's data_parallel, for benchmarks/compile_time/run.
#include <torch/torch.h>
#include <iostream>
#include <utility>
#include <vector>

struct SquareImpl : torch::nn::Cloneable<SquareImpl> {
  void reset() override {}
  torch::Tensor forward(torch::Tensor x) { return x * x; }
};
TORCH_MODULE(Square);

int main() {
  const torch::Tensor x = torch::tensor({1.0, 2.0, 3.0, 4.0, 5.0});
  const std::vector<torch::Device> devices{torch::kCPU};
  std::cout << torch::nn::parallel::data_parallel(Square(), x, devices) << '\n';
}
