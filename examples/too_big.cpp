// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A model 7 times as big as the memory of a device, in 8 stages, whose biases are trained. 4 devices cannot hold it, 8
// can. They are simulated.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <tuple>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>

using Rows = fanout::View<const double, 2>;
using Matrix = fanout::Tensor<double, 2>;
using Vector = fanout::Tensor<double, 1>;

constexpr std::size_t width = 128;
constexpr std::size_t device_bytes = 148 << 10;

/// y = tanh(weight x + bias) for each row x. The weight stays as it is.
struct Layer {
  Matrix weight = Matrix(width, width);
  Vector bias = Vector(width);

  auto forward(fanout::Context auto& ctx, Rows x) const {
    auto y = fanout::output<double>(ctx, width);
    for (std::size_t row = 0; row < x.extent(0); ++row) {
      for (std::size_t k = 0; k < width; ++k) {
        double sum = bias(k);
        for (std::size_t i = 0; i < width; ++i) sum += weight(k, i) * x(row, i);
        y(row, k) = std::tanh(sum);
      }
    }
    return fanout::saved(y, y);
  }
  auto backward(fanout::Context auto& ctx, Rows y, Rows dy) const {
    auto dx = fanout::output<double>(ctx, width);
    Vector gradient(width);
    for (std::size_t row = 0; row < y.extent(0); ++row) {
      for (std::size_t i = 0; i < width; ++i) dx(row, i) = 0;
      for (std::size_t k = 0; k < width; ++k) {
        const double before_tanh = dy(row, k) * (1 - y(row, k) * y(row, k));
        gradient(k) += before_tanh;
        for (std::size_t i = 0; i < width; ++i) dx(row, i) += weight(k, i) * before_tanh;
      }
    }
    return std::pair{dx, fanout::psum(std::move(gradient))};
  }
};

/// Half the squared distance to the targets, and its gradient.
const auto distance = [](Rows y, Rows targets) {
  Matrix dy(y);
  double loss = 0;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dy.data()[i] -= targets.data()[i];
    loss += dy.data()[i] * dy.data()[i] / 2;
  }
  return std::pair{fanout::psum(loss), std::move(dy)};
};

template <std::size_t... I>
void train(const fanout::DeviceSet<fanout::SimulatedDevice>& devices, std::index_sequence<I...>) {
  Layer layer;
  for (std::size_t k = 0; k < width; ++k) layer.weight(k, (k + 1) % width) = 0.9;
  fanout::Pipeline net{
      fanout::PipelineOptions{.micro_batches = 16},
      fanout::stage(layer, fanout::DeviceSet<fanout::SimulatedDevice>({devices[I % devices.size()]}))...};
  Matrix x(16, width);
  Matrix targets(16, width);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(static_cast<double>(i));
  for (double& target : targets) target = 0.25;
  for (int step = 0; step < 6; ++step) {
    const auto [loss, gradients] = net.train(x, targets, distance);
    std::printf("step %d: loss %.1f\n", step, loss / 16);
    const auto descend = [](auto& stage, const Vector& gradient) {
      stage.update([&gradient](Layer& of) {
        for (std::size_t k = 0; k < width; ++k) of.bias(k) -= 0.002 * gradient(k);
      });
    };
    (descend(net.template stage<I>(), std::get<I>(gradients)), ...);
  }
}

int main() {
  constexpr std::size_t stages = 8;
  const double bytes = stages * (width + 1) * width * sizeof(double);
  std::printf("%zu layers have %.1f times the memory of a device\n", stages, bytes / device_bytes);
  for (const std::size_t count : {4U, 8U}) {
    try {
      std::printf("on %zu devices:\n", count);
      train(fanout::simulated_devices(std::vector<fanout::SimulatedDeviceOptions>(count, {.memory = device_bytes})),
            std::make_index_sequence<stages>());
    } catch (const fanout::Error& error) {
      std::printf("%s\n", error.what());
    }
  }
}
