// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contributing/points.hpp"

#include <doctest/doctest.h>

#include <utility>

#include <fanout/fanout.hpp>

using contributing::Points;
using contributing::PointsView;

TEST_CASE("points are split and put together again, also inside a tree") {
  // [use]
  const auto mirror = [](PointsView points) {
    return Points{.x = {points.y.begin(), points.y.end()}, .y = {points.x.begin(), points.x.end()}};
  };
  const fanout::ParallelModel model{mirror, fanout::host_devices(2)};
  const Points mirrored = model(Points{.x = {1, 2, 3}, .y = {4, 5, 6}});
  // [/use]
  CHECK(mirrored.x == std::vector<float>{4, 5, 6});
  CHECK(mirrored.y == std::vector<float>{1, 2, 3});

  const fanout::ParallelModel nested{[mirror](std::pair<PointsView, const int&> x) {
                                       return std::pair{mirror(x.first), x.first.x.size()};
                                     },
                                     fanout::host_devices(2)};
  const auto [points, sizes] = nested(std::pair{Points{.x = {1, 2, 3}, .y = {4, 5, 6}}, 0});
  CHECK(points.x == std::vector<float>{4, 5, 6});
  CHECK(sizes[0] == 2);
}

TEST_CASE("points must have as many rows as the other split arguments") {
  const fanout::ParallelModel model{[](PointsView, std::span<const int>) { return 0; }, fanout::host_devices(2)};
  CHECK_THROWS_AS(model(Points{.x = {1, 2}, .y = {1, 2}}, std::vector{1, 2, 3}), fanout::ShapeMismatch);
}
