// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What docs/guide/from_pytorch.md shows, and that it does what is said there.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace { namespace from_pytorch {

using fanout::Context;
using fanout::host_devices;
using fanout::Options;
using fanout::output;
using fanout::ParallelModel;
using fanout::pmean;
using fanout::Sum;
using fanout::Tensor;
using fanout::View;

// [net]
struct Net {
  Tensor<float, 1> weight;  // a parameter
  auto forward(Context auto& ctx, View<const float, 2> x) const {
    auto y = output<float>(ctx);  // this replica's rows of the result
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto row = x.row(i);
      y[i] = std::inner_product(row.begin(), row.end(), weight.begin(), 0.0F);
    }
    return y;
  }
};
// [/net]

// [buffer]
struct Counted {
  Sum<std::int64_t> rows_seen;            // a buffer: what all replicas add is added up
  auto forward(View<const float, 2> x) {  // not const: it writes a field
    rows_seen.value += static_cast<std::int64_t>(x.extent(0));
    return x;
  }
};
// [/buffer]

// [step]
struct Line {
  float slope;
  auto forward(View<const float, 1> x, View<const float, 1> y) const {
    float gradient = 0;
    for (std::size_t i = 0; i < x.size(); ++i) gradient += 2 * (slope * x[i] - y[i]) * x[i];
    return pmean(gradient / static_cast<float>(x.size()));  // of the whole batch: replicas are weighted by their rows
  }
};
// [/step]

Tensor<float, 2> batch(std::size_t rows, std::size_t columns) {
  Tensor<float, 2> x(rows, columns);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  return x;
}

}}  // namespace ::from_pytorch

TEST_CASE("from PyTorch: the arguments of DataParallel") {
  using namespace from_pytorch;
  const Net net{fanout::tensor<float>({1, 0, 2})};
  const auto x = batch(5, 3);
  // [wrap]
  ParallelModel model{net, host_devices({1, 0}), Options{.output = fanout::DeviceId{"host"}}};
  const auto y = model(x);
  const auto& weight = model.model().weight;
  // [/wrap]
  CHECK(weight == net.weight);
  CHECK(y == fanout::tensor<float>({4, 13, 22, 31, 40}));
  CHECK(model.devices().ids()[0] == fanout::DeviceId{"host", 1});

  const auto with_dim = [](View<const float, 2> columns) { return columns; };
  const ParallelModel on_axis{with_dim, host_devices(2), Options{.axis = -1}};
  CHECK(on_axis(x) == x);

  model.update([](Net& original) { original.weight[0] = 2; });
  CHECK(model(x)[1] == 16);
  CHECK(net.weight[0] == 1);  // the model owns a copy
}

TEST_CASE("from PyTorch: a buffer that all replicas change") {
  using namespace from_pytorch;
  const ParallelModel model{Counted{}, host_devices(2)};
  const auto x = batch(5, 3);
  model(x);
  model(x);
  CHECK(model.model().rows_seen.value == 10);
  CHECK(model.replica(1).model().rows_seen.value == 10);
}

TEST_CASE("from PyTorch: numbers, settings and texts") {
  using namespace from_pytorch;
  const ParallelModel model{[](View<const float, 2> x, float delta, const std::vector<std::string>& names) {
                              return std::tuple{static_cast<float>(x.extent(0)) + delta, names.size()};
                            },
                            host_devices(2)};
  const auto [numbers, sizes] = model(batch(1, 3), 3.0F, fanout::broadcast(std::vector<std::string>{"a", "b"}));
  CHECK(numbers.size() == 1);  // one row: one replica runs, with all of its arguments
  CHECK(numbers[0] == 4);
  CHECK(sizes[0] == 2);
}

TEST_CASE("from PyTorch: the four functions") {
  using namespace from_pytorch;
  const Net net{fanout::tensor<float>({1, 0, 2})};
  const auto x = batch(5, 3);
  // [functions]
  const auto devices = host_devices({0, 1});
  const auto replicas = fanout::replicate(net, devices);
  const auto inputs = fanout::scatter(devices, x);
  const auto y = fanout::gather(fanout::apply(replicas, inputs));
  const auto z = ParallelModel{net, devices}(x);
  // [/functions]
  CHECK(y == z);
  CHECK(inputs.plan.size() == 2);
}

TEST_CASE("from PyTorch: a step of training") {
  using namespace from_pytorch;
  const auto x = fanout::tensor<float>({1, 2, 3, 4, 5});
  const auto y = fanout::tensor<float>({3, 6, 9, 12, 15});
  const float rate = 0.01F;
  ParallelModel model{Line{.slope = 0}, host_devices(2)};
  for (int step = 0; step < 100; ++step) {
    const float gradient = model(x, y);
    model.update([&](Line& line) { line.slope -= rate * gradient; });
  }
  CHECK(model.model().slope == doctest::Approx(3));
}
