// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/scatter/inout.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::inout;
using fanout::ParallelModel;
using fanout::Tensor;
using fanout::View;
using fanout_test::message_of;
using fanout_test::says;

TEST_CASE("forward writes the rows of an inout argument in place") {
  Tensor<int, 2> state(5, 2);
  std::vector<int> numbers{1, 2, 3, 4, 5};
  std::vector<std::string> names{"a", "b", "c", "d", "e"};
  const ParallelModel model{[](fanout::Context auto& ctx, View<int, 2> rows, std::span<int> n, std::span<std::string> s,
                               const std::vector<int>& whole) {
                              for (std::size_t i = 0; i < rows.extent(0); ++i) {
                                rows(i, 1) = static_cast<int>(ctx.rows().first + i) + whole[0];
                                n[i] *= 10;
                                s[i] += "!";
                              }
                            },
                            host_devices(3)};
  const auto* const data = state.data();
  model(inout(state), inout(numbers), inout(names), fanout::broadcast(std::vector{100}));
  CHECK(std::vector(state.begin(), state.end()) == std::vector{0, 100, 0, 101, 0, 102, 0, 103, 0, 104});
  CHECK(numbers == std::vector{10, 20, 30, 40, 50});
  CHECK(names.back() == "e!");
  CHECK(state.data() == data);
  model(inout(state.view()), inout(std::span(numbers)), inout(std::span(names)), fanout::broadcast(std::vector{200}));
  CHECK(state(4, 1) == 204);
  CHECK(numbers[4] == 500);
  CHECK(names[0] == "a!!");
}

TEST_CASE("inout stands in trees") {
  Tensor<float, 1> x(4);
  const ParallelModel model{[](const std::tuple<View<float, 1>, View<const float, 1>>& pair) {
                              for (std::size_t i = 0; i < std::get<1>(pair).extent(0); ++i) {
                                std::get<0>(pair)[i] = 2 * std::get<1>(pair)[i];
                              }
                            },
                            host_devices(2)};
  Tensor<float, 1> y(4);
  y[3] = 4;
  model(std::tuple{inout(x), View<const float, 1>(y)});
  CHECK(x[3] == 8);
}

TEST_CASE("inout has rows as any array, and is checked as one") {
  Tensor<float, 1> x(4);
  CHECK(fanout::batch_rows(inout(x)) == std::size_t{4});
  const ParallelModel model{[](View<float, 1>, View<const float, 1>) {}, host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(inout(x), Tensor<float, 1>(3)); }), "input[0] and input[1]",
             "4 and 3"));
  const ParallelModel on_last{[](View<float, 1>) {}, host_devices(2), fanout::Options{.axis = -1}};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { on_last(inout(x)); }), "input[0]", "expected axis 0"));
}
