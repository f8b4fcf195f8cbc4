// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/count_to.hpp"
#include "support/message_of.hpp"

using namespace fanout::literals;
using fanout::Context;
using fanout::dict;
using fanout::Extents;
using fanout::host_devices;
using fanout::ParallelModel;
using fanout::stack;
using fanout::Tensor;
using fanout::View;
using fanout_test::count_to;
using fanout_test::message_of;
using fanout_test::says;

namespace {

template <class T, std::size_t R>
std::vector<T> values(const Tensor<T, R>& tensor) {
  return std::vector<T>(tensor.begin(), tensor.end());
}

struct Pixel {
  unsigned char red, green;
};

}  // namespace

TEST_CASE("arrays are stacked along a new first axis, in row order") {
  static constexpr int constants[] = {1, 2};
  ParallelModel model{[](Context auto& ctx, View<const int, 1> x) {
                        const auto output = fanout::output<int>(ctx, 2);
                        for (std::size_t i = 0; i < output.size(); ++i)
                          output.data()[i] = 100 * x[0] + static_cast<int>(i);
                        Tensor<double, 3> tensor(1, 2, 1);
                        tensor(0, 1, 0) = x[0];
                        return std::tuple{stack(x),
                                          stack(output),
                                          stack(tensor),
                                          stack(std::vector{x[0], 7, 8}),
                                          stack(std::span(constants)),
                                          stack(std::vector{Pixel{1, 2}})};
                      },
                      host_devices(3)};
  const auto [view, output, tensor, vector, span, pixels] = model(count_to(6));
  static_assert(std::is_same_v<decltype(view), const Tensor<int, 2>>);
  static_assert(std::is_same_v<decltype(tensor), const Tensor<double, 4>>);
  static_assert(std::is_same_v<decltype(pixels), const Tensor<Pixel, 2>>);
  CHECK(view.extents() == Extents<2>{3, 2});
  CHECK(values(view) == std::vector{0, 1, 2, 3, 4, 5});
  CHECK(output.extents() == Extents<3>{3, 2, 2});
  CHECK(values(output) == std::vector{0, 1, 2, 3, 200, 201, 202, 203, 400, 401, 402, 403});
  CHECK(tensor.extents() == Extents<4>{3, 1, 2, 1});
  CHECK(values(tensor) == std::vector<double>{0, 0, 0, 2, 0, 4});
  CHECK(values(vector) == std::vector{0, 7, 8, 2, 7, 8, 4, 7, 8});
  CHECK(values(span) == std::vector{1, 2, 1, 2, 1, 2});
  CHECK(pixels(2, 0).green == 2);
}

TEST_CASE("stacked numbers and strings are one per shard, and trees are stacked leaf by leaf") {
  ParallelModel model{[](Context auto& ctx, View<const int, 1>) {
                        return stack(dict("rank"_k = ctx.rank(), "text"_k = std::string("t"),
                                          "arrays"_k = std::vector<Tensor<float, 2>>(2, Tensor<float, 2>(1, 3)),
                                          "sum"_k = fanout::psum(1)));
                      },
                      host_devices(2)};
  const auto result = model(count_to(4));
  CHECK(values(result["rank"_k]) == std::vector<std::size_t>{0, 1});
  CHECK(result["text"_k] == std::vector<std::string>{"t", "t"});
  REQUIRE(result["arrays"_k].size() == 2);
  CHECK(result["arrays"_k][1].extents() == Extents<3>{2, 1, 3});
  CHECK(result["sum"_k] == 2);
}

TEST_CASE("stack has one entry for each shard that ran") {
  const auto stacked = [](int devices, std::size_t rows) {
    ParallelModel model{[](View<const int, 1> x) {
                          return stack(std::tuple{x, Tensor<int, 1>(2)});
                        },
                        host_devices(devices)};
    const auto [view, tensor] = model(count_to(rows));
    CHECK(tensor.extents() == Extents<2>{view.extent(0), 2});
    return view.extents();
  };
  CHECK(stacked(1, 3) == Extents<2>{1, 3});
  CHECK(stacked(5, 3) == Extents<2>{3, 1});
  CHECK(stacked(2, 0) == Extents<2>{2, 0});
}

TEST_CASE("arrays of different extents cannot be stacked") {
  ParallelModel model{[](View<const int, 1> x) { return dict("rows"_k = stack(std::tuple{1, x})); }, host_devices(2)};
  CHECK(says(message_of<fanout::ShapeMismatch>([&] { model(count_to(5)); }), "output.rows[1]", "[3]",
             "shard 0 on host:0, rows [0, 3)", "[2]", "shard 1 on host:1, rows [3, 5)", "stack needs"));
}
