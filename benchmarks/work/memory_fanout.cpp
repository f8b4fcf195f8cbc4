// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// scatter_gather: a call whose forward touches one element in and out, so that what is timed is the way of the arrays
// there and back. forced_copy: a call whose results cannot stand where forward left them.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include <fanout/array/strided_view.hpp>
#include <fanout/fanout.hpp>
#include <fanout/gather/concatenate_on.hpp>
#include <fanout/parallel/into.hpp>
#include <fanout/replica/strided_pieces.hpp>
#include <fanout/scatter/split_on.hpp>

#include <harness/slice.hpp>
#include <work/copied.hpp>
#include <work/counting.hpp>
#include <work/devices.hpp>
#include <work/grid.hpp>

namespace {

using benchmarks::Grid;
using benchmarks::Slice;
using fanout::broadcast;
using fanout::Context;
using fanout::StridedView;
using fanout::Tensor;
using fanout::View;

/// Where a shard saw its first elements.
struct Seen {
  const float* in = nullptr;
  const float* out = nullptr;
};

Tensor<float, 2> numbered(const Grid& grid) {
  auto x = Tensor<float, 2>::uninitialized(grid.rows, grid.columns);
  for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = benchmarks::element(i);
  return x;
}

/// Bytes of a half of an array, if it is not where it should be.
double bytes_elsewhere(const float* found, const float* expected, const Grid& grid) {
  return found == expected ? 0.0 : static_cast<double>(grid.size() / 2 * sizeof(float));
}

/// What was copied on the way in and on the way out: of each shard, if it did not see the caller's elements, and if
/// what it wrote is not what the caller got.
double bytes_copied(std::span<const Seen> seen, const float* x, const float* y, std::size_t half, const Grid& grid) {
  double bytes = 0;
  for (std::size_t shard = 0; shard < 2; ++shard) {
    bytes += bytes_elsewhere(seen[shard].in, x + shard * half, grid);
    bytes += bytes_elsewhere(seen[shard].out, y + shard * half, grid);
  }
  return bytes;
}

void scatter_gather(Slice& slice) {
  const Grid grid(slice.number("floats", 1e4));
  const bool rows = slice.number("dim", 0) == 0;
  const auto devices = benchmarks::two_host_devices(slice);
  const Tensor<float, 2> x = numbered(grid);
  Tensor<float, 2> y(rows ? 0 : grid.rows, grid.columns);
  Seen seen[2];

  const fanout::ParallelModel by_rows{[&seen](Context auto& ctx, View<const float, 2> part) {
                                        auto out = fanout::output<float>(ctx, part.extent(1));
                                        seen[ctx.rank()] = {part.data(), out.data()};
                                        out.data()[0] = part.data()[0];
                                        return out;
                                      },
                                      devices};
  // Columns are written where the caller wants them: a result of several columns' parts would be no one run of memory.
  const fanout::ParallelModel by_columns{
      [&seen](Context auto& ctx, StridedView<const float, 2> part, const View<float, 2>& whole) {
        const auto out = StridedView<float, 2>(whole).slice(1, ctx.rows());
        seen[ctx.rank()] = {part.data(), out.data()};
        out.data()[0] = part.data()[0];
      },
      devices};

  double bytes = 0;
  if (rows) {
    const auto kept = by_rows(x);
    bytes = bytes_copied(seen, x.data(), kept.data(), grid.size() / 2, grid);
  } else {
    by_columns(fanout::split<1>(x), broadcast(y.view()));
    bytes = bytes_copied(seen, x.data(), y.data(), grid.columns / 2, grid);
  }
  slice.pin_caller();
  auto report =
      rows ? benchmarks::measure_and_count(slice, [&] { static_cast<void>(by_rows(x)); })
           : benchmarks::measure_and_count(slice, [&] { by_columns(fanout::split<1>(x), broadcast(y.view())); });
  report.set("bytes_copied", bytes).print();
}

/// contender returned: forward returns its input, so gather copies all rows into the result. into: the same, into an
/// array of the caller's. columns: what shards return is put together side by side, row by row.
void forced_copy(Slice& slice) {
  const Grid grid(slice.number("floats", 1e6));
  const std::string& way = slice.contender();
  const auto devices = benchmarks::two_host_devices(slice);
  const Tensor<float, 2> x = numbered(grid);
  Tensor<float, 2> y(way == "into" ? grid.rows : 0, grid.columns);

  const fanout::ParallelModel same{[](View<const float, 2> part) { return part; }, devices};
  const fanout::ParallelModel beside{[](View<const float, 2> part) { return fanout::concat<1>(part); }, devices};
  // Rows of x, or, side by side, x's upper half and its lower half.
  const auto check = [&](View<const float, 2> result, std::size_t halves) {
    const std::size_t columns = grid.columns * halves;
    const std::size_t rows = grid.rows / halves;
    if (result.extent(0) != rows || result.extent(1) != columns) slice.fault("a result of other extents");
    for (std::size_t row = 0; row < rows; row += std::max<std::size_t>(rows / 64, 1)) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t from = row + column / grid.columns * rows;
        if (result(row, column) != x(from, column % grid.columns)) slice.fault("an element that is not the input's");
      }
    }
  };

  auto into = same.into(y);
  const auto run = [&](const auto& call) {
    slice.pin_caller();
    auto report = benchmarks::measure_and_count(slice, call);
    benchmarks::set_copied(report, static_cast<double>(grid.size() * sizeof(float))).print();
  };
  if (way == "into") {
    into(x);
    check(y, 1);
    run([&] { into(x); });
  } else if (way == "columns") {
    const Tensor<float, 2> result = beside(x);
    check(result, 2);
    run([&] { static_cast<void>(beside(x)); });
  } else {
    const Tensor<float, 2> result = same(x);
    check(result, 1);
    run([&] { static_cast<void>(same(x)); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice));
  if (slice.name() == "scatter_gather") {
    scatter_gather(slice);
  } else if (slice.name() == "forced_copy") {
    forced_copy(slice);
  } else {
    slice.fault("no case " + slice.name());
  }
}
