// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <vector>

#include <fanout/schedule/partition_layers.hpp>
#include <fanout/simulated.hpp>
#include <fanout/stages/measure_layers.hpp>

namespace {

struct Layer {
  std::size_t columns;
  auto forward(fanout::View<const float, 2> x) const { return fanout::Tensor<float, 2>({x.extent(0), columns}); }
};

}  // namespace

TEST_CASE("layers are measured by the clocks of their devices") {
  const auto devices = fanout::simulated_devices({{.rows_per_second = 1000}});
  const fanout::Tensor<float, 2> x({10, 3});
  const auto narrow = [](fanout::View<const float, 2> in) { return fanout::Tensor<float, 2>({in.extent(0) / 2, 3}); };
  const std::vector<double> seconds = fanout::measure_layers(devices, x, Layer{4}, narrow, Layer{5});
  REQUIRE(seconds.size() == 3);
  CHECK(seconds[0] == doctest::Approx(0.010));
  CHECK(seconds[1] == doctest::Approx(0.010));
  CHECK(seconds[2] == doctest::Approx(0.005));
  CHECK(fanout::partition_layers(seconds, std::vector{1.0, 1.0}) == std::vector<std::size_t>{1, 2});
}

TEST_CASE("the first calls of a layer do not count") {
  int calls = 0;
  const auto slow_at_first = [&calls](fanout::View<const float, 1> x) {
    const int first = ++calls <= 2 ? 30 : 0;
    const auto end = fanout::detail::Clock::now() + first * 1'000'000;
    while (fanout::detail::Clock::now() < end) {
    }
    return fanout::Tensor<float, 1>(x);
  };
  const std::vector<double> seconds =
      fanout::measure_layers(fanout::host_devices(1), fanout::Tensor<float, 1>(3), slow_at_first);
  CHECK(calls >= 7);
  CHECK(seconds.at(0) < 0.015);
}
