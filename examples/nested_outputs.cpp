// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What forward returns may be nested as you like: here a tuple of a tensor and a dict that holds another dict. The
// gathered result has the same structure, and each leaf holds the rows of all devices.

#include <cstdio>
#include <fanout/fanout.hpp>
#include <support/arguments.hpp>
#include <tuple>

// [literals]
using namespace fanout::literals;  // for "image"_k
// [/literals]

// [kernels]
struct NoisyRow {  // called for each row, on whatever device
  fanout::View<const float, 2> input, weight;
  fanout::View<const float, 1> bias;
  fanout::View<float, 2> output, noise;
  fanout::RandomStream random;

  FANOUT_HOST_DEVICE void operator()(std::size_t i) const {
    auto numbers = random.after(i);  // the same for this row on any number of devices
    for (std::size_t o = 0; o < weight.extent(0); ++o) {
      noise(i, o) = static_cast<float>(0.1 * numbers.normal());
      output(i, o) = bias[o] + noise(i, o);
      for (std::size_t k = 0; k < input.extent(1); ++k) output(i, o) += weight(o, k) * input(i, k);
    }
  }
};

struct Total {
  fanout::View<const float, 2> values;
  fanout::View<float, 1> total;

  FANOUT_HOST_DEVICE void operator()(std::size_t) const {
    total[0] = 0;
    for (std::size_t i = 0; i < values.size(); ++i) total[0] += values.data()[i];
  }
};
// [/kernels]

// [model]
struct Model {                      // any functor with a forward; no base class, no macro
  fanout::Tensor<float, 2> weight;  // [out, in]
  fanout::Tensor<float, 1> bias;    // [out]

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> input) const {
    auto output = fanout::output<float>(ctx, weight.extent(0));  // this shard's rows of the gathered result
    auto noise = fanout::output<float>(ctx, weight.extent(0));
    auto total = fanout::empty<float>(ctx, 1);  // one number per shard
    fanout::launch(ctx, input.extent(0), NoisyRow{input, weight, bias, output, noise, ctx.random(0)});
    fanout::launch(ctx, 1, Total{output, total});
    return std::tuple{
        output, fanout::dict("image"_k = fanout::dict("output"_k = output, "noise"_k = noise), "scalar"_k = total)};
  }
};
// [/model]

int main(int argc, char** argv) {
  int devices = 2;
  examples::Arguments arguments("Shows that nested results come back nested.");
  arguments.add("devices", devices, {1, 4096}, "how many host devices to use");
  arguments.parse(argc, argv);

  fanout::Tensor<float, 2> input(30, 5);
  for (float value = 0; float& x : input) x = value++ / 150;
  Model original{fanout::Tensor<float, 2>(2, 5), fanout::Tensor<float, 1>(2)};
  for (float& w : original.weight) w = 0.5F;

  // [use]
  fanout::ParallelModel model{original, fanout::host_devices(devices)};
  auto [output, extras] = model(input);              // [30, 5] is split by rows; output is [30, 2]
  const auto& noise = extras["image"_k]["noise"_k];  // [30, 2]: nested results come back nested
  // [/use]
  std::printf("output %s, noise %s\n", to_string(output.extents()).c_str(), to_string(noise.extents()).c_str());

  const auto show = [](const auto& leaf, const fanout::LeafPath& path) {
    std::printf("%-24s %-8s in %s\n", to_string(path).c_str(), to_string(leaf.extents()).c_str(),
                to_string(leaf.space().owner).c_str());
  };
  fanout::visit_arrays(std::tie(output, extras), fanout::LeafPath("output"), show);
}
