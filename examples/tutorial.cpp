// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The classic demonstration of data parallelism: batches of 30 rows of random data through a linear model 5 -> 2 that
// adds noise. Each replica tells what it sees, and so does the caller.

#include <algorithm>
#include <cstdio>
#include <fanout/fanout.hpp>
#include <random>
#include <string>
#include <support/arguments.hpp>

/// What is done for each row, on whatever device.
struct NoisyRow {
  fanout::View<const float, 2> input, weight;
  fanout::View<const float, 1> bias;
  fanout::View<float, 2> output;
  fanout::RandomStream random;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    auto noise = random.after(i);
    for (std::size_t o = 0; o < weight.extent(0); ++o) {
      output(i, o) = bias[o] + static_cast<float>(0.1 * noise.normal());
      for (std::size_t k = 0; k < input.extent(1); ++k) output(i, o) += weight(o, k) * input(i, k);
    }
  }
};

struct LinearModel {
  fanout::Tensor<float, 2> weight;  // [out, in]
  fanout::Tensor<float, 1> bias;    // [out]

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> input) const {
    auto output = fanout::output<float>(ctx, weight.extent(0));
    fanout::launch(ctx, input.extent(0), NoisyRow{input, weight, bias, output, ctx.random(0)});
    // One call prints one whole line, so that the replicas' lines do not break into each other.
    std::printf("\tIn Model: input size %s output size %s\n", to_string(input.extents()).c_str(),
                to_string(output.extents()).c_str());
    return output;
  }
};

int main(int argc, char** argv) {
  int devices = 2;
  examples::Arguments arguments("Runs batches of random data through a noisy linear model.");
  arguments.add("devices", devices, {1, 4096}, "how many host devices to use");
  arguments.parse(argc, argv);

  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  const auto fill = [&](auto& tensor) {
    std::generate(tensor.begin(), tensor.end(), [&] { return normal(generator); });
  };
  constexpr std::size_t rows = 100;
  constexpr std::size_t batch = 30;
  fanout::Tensor<float, 2> data(rows, 5);
  LinearModel original{fanout::Tensor<float, 2>(2, 5), fanout::Tensor<float, 1>(2)};
  fill(data);
  fill(original.weight);
  fill(original.bias);

  std::printf("Let's use %d device%s!\n", devices, devices == 1 ? "" : "s");
  fanout::ParallelModel model{original, fanout::host_devices(devices), fanout::Options{.seed = 1}};
  for (std::size_t begin = 0; begin < rows; begin += batch) {
    const auto input = data.rows({begin, std::min(begin + batch, rows)});
    const auto output = model(input);
    std::printf("Outside: input size %s output_size %s\n", to_string(input.extents()).c_str(),
                to_string(output.extents()).c_str());
  }
}
