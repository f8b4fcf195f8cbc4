// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A leaf of a user's own that is split on either of its axes, says which shard does not fit, and moves what stands
// alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

/// Numbers from `first` on by rows, of which a part is shown by its corner.
struct Grid {
  std::size_t corner[2] = {0, 0};
  std::size_t size[2];
  std::vector<int> log = {};  ///< who made it

  friend bool operator==(const Grid& a, const Grid& b) {
    return std::equal(a.corner, a.corner + 2, b.corner) && std::equal(a.size, a.size + 2, b.size);
  }
};

}  // namespace

template <>
struct fanout::leaf_traits<Grid> {
  using piece_type = Grid;

  static std::size_t rows(const Grid& grid) { return grid.size[0]; }
  static Grid piece(const Grid& grid, std::size_t begin, std::size_t end) {
    return piece_on(0, grid, begin, end, LeafPath("grid"));
  }
  static std::size_t rows_on(int axis, const Grid& grid, const LeafPath& path) {
    return grid.size[backend::checked_axis(axis, 2, path)];
  }
  static Grid piece_on(int axis, const Grid& grid, std::size_t begin, std::size_t end, const LeafPath& path) {
    Grid part = grid;
    const std::size_t at = backend::checked_axis(axis, 2, path);
    part.corner[at] += begin;
    part.size[at] = end - begin;
    return part;
  }
  static Grid concatenate(auto& pieces, const GatherTarget& place, const LeafPath& path) {
    if (pieces.size() == 1) return pieces.take_only();
    const std::size_t axis = backend::checked_axis(place.axis, 2, path);
    Grid whole = pieces[0];
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      if (pieces[i].corner[axis] != whole.corner[axis] + whole.size[axis]) {
        throw ShapeMismatch(explain({.what = "a gap", .where = to_string(path), .found = place.describe(i)}));
      }
      whole.size[axis] += pieces[i].size[axis];
    }
    return whole;
  }
};

TEST_CASE("a user-defined leaf is split and gathered on the chosen axis") {
  const Grid grid{.size = {4, 6}};
  const auto same = [](const Grid& part) { return part; };
  CHECK(fanout::ParallelModel{same, fanout::host_devices(3)}(grid) == grid);
  const fanout::ParallelModel columns{same, fanout::host_devices(3), fanout::Options{.axis = -1}};
  CHECK(columns(grid) == grid);
  const fanout::ParallelModel one{[](const Grid& part) { return part.size[1]; }, fanout::host_devices(2)};
  CHECK(one(fanout::split<1>(grid))[1] == 3);
  CHECK_THROWS_WITH_AS(one(fanout::split<2>(grid)), doctest::Contains("at input[0]"), fanout::ShapeMismatch);
}

TEST_CASE("a user-defined leaf's error names its shard, and the leaf of a single shard is moved") {
  const fanout::ParallelModel model{[](Grid part) {
                                      part.corner[0] = 0;
                                      return part;
                                    },
                                    fanout::host_devices(2)};
  CHECK_THROWS_WITH_AS(model(Grid{.size = {5, 1}}), "a gap at output: found shard 1 on host:1, rows [3, 5)",
                       fanout::ShapeMismatch);
  const int* made = nullptr;
  const fanout::ParallelModel alone{[&made](Grid part) {
                                      part.log.assign(3, 1);
                                      made = part.log.data();
                                      return part;
                                    },
                                    fanout::host_devices(1)};
  CHECK(alone(Grid{.size = {5, 1}}).log.data() == made);
}
