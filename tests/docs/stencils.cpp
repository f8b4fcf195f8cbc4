// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

namespace {

// [plate]
/// One step of the heat equation on a plate, whose edge keeps its temperature.
struct Plate {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 2> plate, fanout::RowRange rows) const {
    const std::size_t columns = plate.extent(1);
    auto next = fanout::output<double>(ctx, columns);
    for (const auto [local, global] : rows.enumerate()) {
      for (std::size_t column = 0; column < columns; ++column) {
        const bool at_edge = global == 0 || global + 1 == plate.extent(0) || column == 0 || column + 1 == columns;
        next(local, column) = at_edge ? plate(global, column)
                                      : (plate(global - 1, column) + plate(global + 1, column) +
                                         plate(global, column - 1) + plate(global, column + 1)) /
                                            4;
      }
    }
    return next;
  }
};
// [/plate]

}  // namespace

TEST_CASE("a plate is computed into two arrays in turns") {
  fanout::Tensor<double, 2> plate(5, 4);
  for (std::size_t column = 0; column < 4; ++column) plate(0, column) = 64;
  // [use_plate]
  const fanout::ParallelModel step{Plate(), fanout::host_devices(2)};
  fanout::Tensor<double, 2> next(plate.extents());
  for (int n = 0; n < 3; ++n) {
    step.into(next)(fanout::broadcast(plate), fanout::Range{plate.extent(0)});
    std::swap(plate, next);
  }
  // [/use_plate]
  CHECK(plate(0, 1) == 64);
  CHECK(plate(1, 1) == 22);
  CHECK(plate(2, 1) == 6);
  CHECK(plate(4, 2) == 0);
}
