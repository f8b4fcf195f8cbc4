// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trains a small convolutional network of libtorch on handwritten digits, data-parallel over host devices, with an
// optimizer of libtorch. Each device runs the forward and the backward pass of its rows. libtorch's own data_parallel
// needs GPUs.

#include <fanout/adapt/torch.hpp>
#include <fanout/fanout.hpp>

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "support/arguments.hpp"
#include "support/digits_data.hpp"
#include "support/loss_log.hpp"

using namespace fanout::literals;
using examples::Digits;

namespace {

// [net]
struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("edges", edges), register_module("shapes", shapes), register_module("scores", scores);
    to(torch::kDouble);
  }

  torch::Tensor forward(torch::Tensor x) {  // [rows, 64] to [rows, 10]
    x = torch::max_pool2d(edges(x.reshape({-1, 1, 8, 8})).relu(), 2);
    x = torch::max_pool2d(shapes(x).relu(), 2);
    return scores(x.flatten(1));
  }

  torch::nn::Conv2d edges{torch::nn::Conv2dOptions(1, 8, 3).padding(1)};
  torch::nn::Conv2d shapes{torch::nn::Conv2dOptions(8, 16, 3).padding(1)};
  torch::nn::Linear scores{64, 10};
};
TORCH_MODULE(Net);
// [/net]

// [step]
/// One step on a shard: its loss and the gradients, both means over its rows.
struct Step {
  std::shared_ptr<NetImpl> net;

  static fanout::TorchModes caller_state() { return {}; }
  auto forward(const torch::Tensor& x, const torch::Tensor& labels) const {
    const auto loss = torch::cross_entropy_loss(net->forward(x), labels);
    return fanout::dict("loss"_k = fanout::pmean(loss.detach()),
                        "gradients"_k = fanout::pmean(fanout::gradients(*net, loss)));
  }
};
// [/step]

}  // namespace

int main(int argc, char** argv) try {
  int devices = fanout::host_device_count();
  std::size_t batch = 128, epochs = 20;
  std::string data = "examples/data/digits.csv", losses;
  examples::Arguments arguments{"Trains a convolutional network of libtorch on handwritten digits, then tests it."};
  arguments.add("devices", devices, {1, 4096}, "host devices");
  arguments.add("batch", batch, {1}, "rows of a step");
  arguments.add("epochs", epochs, {1}, "times through the data");
  arguments.add("data", data, "file with 64 pixels and a label in each line");
  arguments.add("losses", losses, "file to which the loss of every step is written");
  arguments.parse(argc, argv);

  torch::manual_seed(1);
  torch::set_num_threads(1);  // the devices use the cores
  Digits digits = examples::read_digits(data);
  examples::LossLog log(losses);
  const auto pixels = fanout::as_torch(digits.pixels);
  const auto labels = torch::tensor(digits.labels, torch::kLong);
  const auto rows = [&](std::size_t begin, std::size_t end) {
    return torch::indexing::Slice(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
  };

  // [train]
  const Net net;
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const fanout::ParallelModel model{Step{net.ptr()}, fanout::host_devices(devices)};
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t begin = 0; begin < digits.train_rows(); begin += batch) {
      const std::size_t end = std::min(begin + batch, digits.train_rows());
      const auto step = model(pixels.index({rows(begin, end)}), labels.index({rows(begin, end)}));
      fanout::set_gradients(*net.ptr(), step["gradients"_k]);
      optimizer.step();
      log.add(epoch, end - begin, step["loss"_k].item<double>());
    }
  }
  // [/train]

  log.close();

  const torch::NoGradGuard no_grad;
  const auto test = rows(digits.train_rows(), digits.rows());
  const auto right = net.ptr()->forward(pixels.index({test})).argmax(1).eq(labels.index({test})).sum().item<int>();
  std::printf("accuracy %d of %zu\n", right, Digits::test_rows);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
