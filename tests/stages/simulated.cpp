// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fanout/simulated.hpp>
#include <fanout/stages.hpp>

namespace {

using fanout::DeviceSet;
using fanout::Pipeline;
using fanout::PipelineOptions;
using fanout::simulated_devices;
using fanout::SimulatedDevice;
using fanout::SimulatedDeviceOptions;
using fanout::stage;
using fanout::Tensor;

struct Copy {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    auto y = fanout::output<float>(ctx, x.extent(1));
    for (std::size_t i = 0; i < x.size(); ++i) y.data()[i] = x.data()[i];
    return y;
  }
};

/// The virtual time of a call of p equal stages for m micro-batches of 10 rows, in times of one step.
template <std::size_t... Stage>
double steps(std::index_sequence<Stage...>, std::size_t micro_batches, std::size_t in_flight = 0) {
  const auto devices =
      simulated_devices(std::vector<SimulatedDeviceOptions>(sizeof...(Stage), {.rows_per_second = 1000}));
  const Pipeline net{PipelineOptions{.micro_batches = micro_batches, .in_flight = in_flight},
                     stage(Copy{}, DeviceSet<SimulatedDevice>({devices[Stage]}))...};
  const Tensor<float, 2> x({10 * micro_batches, 3});
  net(x);
  const auto begin = devices[0].time();
  net(x);
  return static_cast<double>(devices[0].time() - begin) / 10'000'000;
}

template <std::size_t Stages>
double steps_of(std::size_t micro_batches) {
  return steps(std::make_index_sequence<Stages>(), micro_batches);
}

}  // namespace

TEST_CASE("equal stages take no more steps than the schedule needs") {
  for (const std::size_t m : std::vector<std::size_t>{1, 2, 8, 32}) {
    CAPTURE(m);
    const auto steps_needed = static_cast<double>(m);
    CHECK(steps_of<1>(m) == steps_needed);
    CHECK(steps_of<2>(m) == steps_needed + 1);
    CHECK(steps_of<4>(m) == steps_needed + 3);
    CHECK(steps_of<8>(m) == steps_needed + 7);
  }
}

TEST_CASE("a micro-batch waits until one in flight has ended") {
  CHECK(steps(std::make_index_sequence<4>(), 8, 1) == 8 * 4);
  CHECK(steps(std::make_index_sequence<4>(), 8, 2) == 4 * 4 + 1);
  CHECK(steps(std::make_index_sequence<4>(), 8, 4) == 8 + 3);
}

namespace {

/// y = weight[0] * x, with many weights.
struct Large {
  Tensor<double, 1> weight;

  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y(i) = weight(0) * x(i);
    return fanout::saved(y, x);
  }
  auto backward(fanout::Context auto& ctx, const auto& x, fanout::View<const double, 1> dy) const {
    auto dx = fanout::output<double>(ctx);
    double gradient = 0;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dx(i) = weight(0) * dy(i);
      gradient += x(i) * dy(i);
    }
    return std::pair{dx, fanout::psum(gradient)};
  }
};

Large large(std::size_t weights) {
  Large model{Tensor<double, 1>(weights)};
  model.weight(0) = 2;
  return model;
}

const auto sum_of_rows = [](fanout::View<const double, 1> y, fanout::View<const double, 1> weights) {
  double sum = 0;
  Tensor<double, 1> dy(y.extents());
  for (std::size_t i = 0; i < y.size(); ++i) {
    sum += weights(i) * y(i);
    dy(i) = weights(i);
  }
  return std::pair{fanout::psum(sum), std::move(dy)};
};

/// Trains so many stages, one on each device. Each weight is 2, and all rows are 1.
template <std::size_t... Stage, class Devices>
void check_trained(std::index_sequence<Stage...>, const Devices& devices, std::size_t rows, std::size_t weights) {
  const Pipeline net{PipelineOptions{.micro_batches = rows},
                     stage(large(weights), DeviceSet<SimulatedDevice>({devices[Stage]}))...};
  Tensor<double, 1> ones(rows);
  for (double& value : ones) value = 1;
  const auto [loss, gradients] = net.train(ones, ones, sum_of_rows);
  const double wanted = static_cast<double>(rows) * static_cast<double>(std::size_t{1} << sizeof...(Stage));
  CHECK(loss == wanted);
  const auto check = [&](double gradient) { CHECK(gradient == wanted / 2); };
  (check(std::get<Stage>(gradients)), ...);
}

}  // namespace

TEST_CASE("a model 7 times as large as the memory of a device is trained on 8 devices") {
  const auto devices = simulated_devices(std::vector<SimulatedDeviceOptions>(8, {.memory = 1 << 20}));
  constexpr std::size_t weights = (7U << 20) / 8 / sizeof(double);
  check_trained(std::make_index_sequence<8>(), devices, 32, weights);
  // One device does not hold two stages.
  const DeviceSet<SimulatedDevice> first({devices[0]});
  const Pipeline two{stage(large(weights), first), stage(large(weights), first)};
  try {
    two(Tensor<double, 1>(4));
    FAIL("two stages fit");
  } catch (const fanout::StageError& error) {
    CHECK(error.stage() == 1);
  }
}

namespace {

/// One step of training of four stages for micro-batches of 256 rows, where a device has so many bytes. True if they
/// were enough.
template <class Order>
bool is_trained(Order order, std::size_t micro_batches, std::size_t limited, std::size_t bytes) {
  std::vector<SimulatedDeviceOptions> options(4);
  options[limited].memory = bytes;
  const auto devices = simulated_devices(options);
  const auto at = [&](std::size_t i) { return stage(large(1), DeviceSet<SimulatedDevice>({devices[i]})); };
  const Pipeline net{PipelineOptions{.micro_batches = micro_batches, .schedule = order}, at(0), at(1), at(2), at(3)};
  const Tensor<double, 1> x(256 * micro_batches);
  try {
    net.train(x, x, sum_of_rows);
    return true;
  } catch (const fanout::StageError& error) {
    CHECK(std::string(error.what()).find("out of memory") != std::string::npos);
    return false;
  }
}

/// The least memory of the limited device with which is_trained() returns true, to 1 KiB.
template <class Order>
std::size_t memory_needed(Order order, std::size_t micro_batches, std::size_t limited) {
  std::size_t too_few = 0;
  std::size_t enough = 1 << 20;
  REQUIRE(is_trained(order, micro_batches, limited, enough));
  while (enough - too_few > 1 << 10) {
    const std::size_t middle = (too_few + enough) / 2;
    (is_trained(order, micro_batches, limited, middle) ? enough : too_few) = middle;
  }
  return enough;
}

template <class Order>
void check_memory(Order order) {
  const Pipeline net{PipelineOptions{.micro_batches = 8, .schedule = order}, stage(large(1), simulated_devices({{}})),
                     stage(large(1), simulated_devices({{}})), stage(large(1), simulated_devices({{}})),
                     stage(large(1), simulated_devices({{}}))};
  const std::vector<std::size_t> kept = net.plan(8).kept;
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CAPTURE(kept[i]);
    // Each value has one number a row. One may arrive while the device computes.
    const std::size_t value = 256 * sizeof(double);
    const std::size_t all = memory_needed(order, 8, i);
    CHECK(all <= kept[i] * memory_needed(order, 1, i) + value);
    CHECK(all >= kept[i] * value);
  }
}

}  // namespace

TEST_CASE("a device needs the memory of as many micro-batches as the plan announces") {
  check_memory(fanout::GPipe{});
  check_memory(fanout::OneForwardOneBackward{});
}
