// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
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
  for (const std::size_t m : {1, 2, 8, 32}) {
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
