// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sanitizers: address
#include <fanout/scatter/rows.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

#include "support/message_of.hpp"

using fanout::host_devices;
using fanout::ParallelModel;
using fanout::rows;
using fanout::Tensor;

namespace {

struct Mesh {
  std::string name;
  std::vector<int> faces;
};

}  // namespace

TEST_CASE("the elements of rows(v) are split and not what is in them") {
  std::vector<Tensor<int, 1>> tensors;
  for (std::size_t i = 0; i < 5; ++i) tensors.emplace_back(i);
  const ParallelModel model{[](fanout::Context auto& ctx, std::span<const Tensor<int, 1>> some) {
                              CHECK(some.front().extent(0) == ctx.rows().first);
                              std::vector<std::size_t> sizes;
                              for (const auto& tensor : some) sizes.push_back(tensor.size());
                              return sizes;
                            },
                            host_devices(2)};
  CHECK(model(rows(tensors)) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(model(rows(std::span(tensors))) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(model(rows(std::vector(tensors))) == std::vector<std::size_t>{0, 1, 2, 3, 4});
}

TEST_CASE("structs of all kinds are rows, in place") {
  const std::array<Mesh, 3> meshes{{{"a", {1}}, {"b", {1, 2}}, {"c", {}}}};
  const ParallelModel model{[&meshes](std::span<const Mesh> some, std::span<const int>) {
                              CHECK(some.data() >= meshes.data());
                              CHECK(some.data() < meshes.data() + 3);
                              std::vector<std::string> names;
                              for (const Mesh& mesh : some) names.push_back(mesh.name);
                              return names;
                            },
                            host_devices(2)};
  CHECK(model(rows(meshes), std::vector{1, 2, 3}) == std::vector<std::string>{"a", "b", "c"});
  CHECK_THROWS_AS(model(rows(meshes), std::vector{1, 2}), fanout::ShapeMismatch);
}

TEST_CASE("a vector without tensors is rows, whatever its elements are") {
  const std::vector<std::vector<double>> matrix(4, std::vector<double>(6, 3.5));
  const std::vector<std::pair<std::string, int>> pairs{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}};
  for (const int devices : {1, 2, 3}) {
    const ParallelModel model{[](std::span<const std::vector<double>> some,
                                 std::span<const std::pair<std::string, int>> names, std::span<const Mesh>) {
                                std::vector<std::pair<double, std::string>> sums;
                                for (std::size_t i = 0; i < some.size(); ++i) {
                                  double sum = 0;
                                  for (const double x : some[i]) sum += x;
                                  sums.emplace_back(sum, names[i].first);
                                }
                                return sums;
                              },
                              host_devices(devices)};
    CHECK(model(matrix, pairs, std::vector<Mesh>(4)) ==
          std::vector<std::pair<double, std::string>>{{21, "a"}, {21, "b"}, {21, "c"}, {21, "d"}});
  }
}

TEST_CASE("a C array is rows like a vector, and a string literal goes whole") {
  const double numbers[5] = {1, 2, 3, 4, 5};
  const float points[5][3] = {};
  const ParallelModel model{[&](std::span<const double> some, std::span<const float[3]> others, const char* name) {
                              CHECK(some.data() >= numbers);
                              CHECK(some.size() == others.size());
                              return std::vector<std::string>(some.size(), name);
                            },
                            host_devices(2)};
  CHECK(model(numbers, points, "text") == std::vector<std::string>(5, "text"));
  CHECK(model.async(numbers, points, "text").get().size() == 5);
}

TEST_CASE("the error for different numbers of rows names rows(v) and each(v)") {
  const std::vector<Tensor<int, 1>> tensors{Tensor<int, 1>(3), Tensor<int, 1>(4)};
  CHECK(fanout_test::says(fanout_test::message_of<fanout::ShapeMismatch>([&] { (void)fanout::batch_rows(tensors); }),
                          "input[0][0] and input[0][1]", "3 and 4", "broadcast(x)", "rows(v)", "each(v)"));
}

TEST_CASE("rows(v) works inside trees and is split by element, whatever the axis") {
  const std::vector<Mesh> meshes(4);
  const ParallelModel model{[](const std::pair<std::span<const Mesh>, fanout::View<const int, 2>>& piece) {
                              CHECK(piece.second.extents() == fanout::Extents<2>{3, 2});
                              return piece.first.size();
                            },
                            host_devices(2), fanout::Options{.axis = 1}};
  const Tensor<int, 2> x(3, 4);
  const auto sizes = model(std::pair{rows(meshes), fanout::View<const int, 2>(x)});
  CHECK(sizes[0] == 2);
  CHECK(sizes[1] == 2);
}
