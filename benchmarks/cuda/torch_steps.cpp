// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains the network of the example `digits` by libtorch on a GPU, for as many steps as its argument says, on data that
// are there already. Prints the steps per second. Ends with 77 if this libtorch cannot use a GPU, unless the second
// argument is "cpu".

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <torch/torch.h>

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 1200;
  const bool on_cpu = argc > 2 && std::string_view(argv[2]) == "cpu";
  if (!on_cpu && !torch::cuda::is_available()) {
    std::printf("skipped: this libtorch cannot use a GPU\n");
    return 77;
  }
  constexpr int rows = 1500, batch = 128, pixels = 64, hidden = 32, kinds = 10;
  const torch::Device device(on_cpu ? torch::kCPU : torch::kCUDA);
  const auto number = torch::TensorOptions().dtype(torch::kDouble).device(device);
  const auto x = torch::rand({rows, pixels}, number);
  const auto labels = torch::randint(kinds, {rows}, torch::TensorOptions().dtype(torch::kLong).device(device));
  torch::nn::Sequential network(torch::nn::Linear(pixels, hidden), torch::nn::Tanh(), torch::nn::Linear(hidden, kinds));
  network->to(device, torch::kDouble);
  torch::optim::SGD descent(network->parameters(), torch::optim::SGDOptions(0.5));
  double loss = 0;
  const auto train = [&](int count) {
    for (int n = 0, begin = 0; n < count; ++n, begin += batch) {
      if (begin >= rows) begin = 0;
      const int end = begin + batch < rows ? begin + batch : rows;
      descent.zero_grad();
      const auto step =
          torch::cross_entropy_loss(network->forward(x.slice(0, begin, end)), labels.slice(0, begin, end));
      step.backward();
      descent.step();
      loss = step.item<double>();  // as the example notes it
    }
  };
  train(60);  // what is made at first use
  const auto begin = std::chrono::steady_clock::now();
  train(steps);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("%.1f steps per second, loss %.6f\n", steps / seconds, loss);
}
