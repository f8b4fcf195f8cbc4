// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A module of libtorch whose forward returns a tensor and a dict of tensors, over host devices. libtorch's own
// data_parallel takes modules that return one tensor, and needs GPUs.

#include <fanout/adapt/torch.hpp>
#include <fanout/fanout.hpp>

#include <torch/nn/modules/linear.h>
#include <torch/utils.h>
#include <cstdio>
#include <string>
#include <tuple>
#include <unordered_map>

// [module]
struct NetImpl : torch::nn::Module {
  NetImpl() { register_module("hidden", hidden), register_module("scores", scores); }

  std::tuple<torch::Tensor, std::unordered_map<std::string, torch::Tensor>> forward(const torch::Tensor& x) {
    const auto h = hidden(x).relu();
    const auto y = scores(h);
    return {y, {{"hidden", h}, {"label", y.argmax(1)}, {"mean", y.mean()}}};
  }

  torch::nn::Linear hidden{4, 8}, scores{8, 3};
};
TORCH_MODULE(Net);
// [/module]

int main() {
  torch::manual_seed(1);
  torch::set_num_threads(1);  // the devices use the cores
  const Net net;
  const auto x = torch::rand({10, 4});

  // [torch]
  const fanout::ParallelModel model{fanout::TorchModel{net}, fanout::host_devices(3)};
  const torch::NoGradGuard no_grad;  // for all devices
  const auto [y, more] = model(x);   // [10, 3], and a map of [10, 8], [10] and one mean for each device, [3]
  // [/torch]

  const auto alone = std::get<0>(net.ptr()->forward(x));
  const auto extents = [](const torch::Tensor& tensor) {
    std::string text;
    for (const auto extent : tensor.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(extent);
    return '[' + text + ']';
  };
  std::printf("scores %s, as without fanout: %s\n", extents(y).c_str(), torch::allclose(y, alone) ? "yes" : "no");
  for (const char* const name : {"hidden", "label", "mean"}) {
    std::printf("%s %s\n", name, extents(more.at(name)).c_str());
  }
}
