// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fanout/stages.hpp>

namespace {

// [models]
/// Two layers of a network. Each has weights that need not fit on the other's device.
struct Layer {
  fanout::Tensor<float, 2> weight;  // [out, in]

  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, weight.extent(0));  // [rows of the shard, out]
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t o = 0; o < weight.extent(0); ++o) {
        y(row, o) = 0;
        for (std::size_t i = 0; i < weight.extent(1); ++i) y(row, o) += weight(o, i) * x(row, i);
      }
    }
    return y;
  }
};
// [/models]

Layer layer(std::size_t out, std::size_t in) {
  Layer made{fanout::Tensor<float, 2>({out, in})};
  for (float& weight : made.weight) weight = 0.5F;
  return made;
}

TEST_CASE("documentation: stages") {
  const fanout::Tensor<float, 2> x({64, 16});
  // [first]
  // On GPUs: fanout::cuda_devices({0, 1}) and fanout::cuda_devices({2, 3}).
  fanout::Pipeline net{fanout::stage(layer(32, 16), fanout::host_devices(2)),
                       fanout::stage(layer(8, 32), fanout::host_devices(1))};
  fanout::Tensor<float, 2> y = net(x);  // what the second layer returns for what the first one returns
  // [/first]
  CHECK(y.extents() == fanout::Extents<2>{64, 8});

  // [options]
  const fanout::Pipeline fine{fanout::PipelineOptions{.micro_batches = 16, .in_flight = 4},
                              fanout::stage(layer(32, 16), fanout::host_devices(2)),
                              fanout::stage(layer(8, 32), fanout::host_devices(1))};
  // [/options]
  CHECK(fine(x).extents() == y.extents());

  // [update]
  net.stage<1>().update([](Layer& last) { last.weight(0, 0) = 2; });
  // [/update]
  CHECK(net(x).extents() == y.extents());
}

TEST_CASE("documentation: keys and errors of stages") {
  // [skip]
  using namespace fanout::literals;
  using Column = fanout::View<const float, 1>;
  const auto first = [](Column x) {
    return fanout::dict("x"_k = fanout::Tensor<float, 1>(x), "skip"_k = fanout::Tensor<float, 1>(x));
  };
  const auto middle = [](Column x) {
    fanout::Tensor<float, 1> y(x);
    for (float& value : y) value = std::sin(value);
    return fanout::dict("x"_k = std::move(y));
  };
  const auto last = [](Column x, Column skip) {
    fanout::Tensor<float, 1> y(x);
    for (std::size_t i = 0; i < y.size(); ++i) y(i) += skip(i);
    return y;
  };
  const auto devices = [] { return fanout::host_devices(1); };
  const fanout::Pipeline net{fanout::stage(first, devices()), fanout::stage(middle, devices()).takes("x"_k),
                             fanout::stage(last, devices()).takes("x"_k, "skip"_k)};
  // [/skip]
  fanout::Tensor<float, 1> x(10);
  x(9) = 1;
  CHECK(net(x)(9) == doctest::Approx(1 + std::sin(1.0)));

  const fanout::Pipeline bad{
      fanout::stage([](Column part) { return fanout::Tensor<float, 1>(part); }, devices()),
      fanout::stage([](Column) -> fanout::Tensor<float, 1> { throw std::runtime_error("no"); }, devices())};
  std::string text;
  // [error]
  try {
    bad(x);
  } catch (const fanout::StageError& error) {
    text = error.what();
    // stage 1 failed on micro-batch 0, rows [0, 2)
    //   Caught fanout::v0::ReplicaError: forward failed on 1 of 1 replica
    //     Caught std::runtime_error in replica 0 on device host:0, rows [0, 2): no
  }
  // [/error]
  CHECK(text ==
        "stage 1 failed on micro-batch 0, rows [0, 2)\n"
        "  Caught fanout::v0::ReplicaError: forward failed on 1 of 1 replica\n"
        "    Caught std::runtime_error in replica 0 on device host:0, rows [0, 2): no");
}

TEST_CASE("documentation: layers for stages") {
  // [partition]
  const std::vector<double> seconds{1, 1, 1, 1, 1, 1, 3};                             // of each layer, as measured
  const std::vector<double> speeds{1, 1};                                             // of each device
  const std::vector<std::size_t> layers = fanout::partition_layers(seconds, speeds);  // {5, 2}
  // [/partition]
  CHECK(layers == std::vector<std::size_t>{5, 2});
}

}  // namespace
