// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors as models on two host devices.

#include <cstddef>
#include <cstdint>

#include <fanout/fanout.hpp>
#include <fanout/gather/reduction.hpp>
#include <fanout/scatter/broadcast.hpp>
#include <fanout/scatter/inout.hpp>
#include <fanout/scatter/range.hpp>

#include <work/devices.hpp>
#include <work/functors.hpp>

namespace {

using benchmarks::Runners;
using fanout::View;

/// Writes its rows of the next grid, from all of the present one: so there are no halos to be exchanged.
struct Sweep {
  void forward(fanout::Context auto& ctx, View<float, 2> rows, View<const float, 2> now, Runners* runners) const {
    const auto [begin, end] = ctx.rows();
    benchmarks::sweep_rows(now.data(), rows.data() - begin * now.extent(1), now.extent(0), begin, end);
    runners->note(begin, end, now.extent(0));
  }
};

struct Hits {
  auto forward(fanout::RowRange rows, std::size_t total, Runners* runners) const {
    runners->note(rows.first, rows.last, total);
    return fanout::psum(benchmarks::count_hits(rows.first, rows.last));
  }
};

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice));
  const auto devices = benchmarks::two_host_devices(slice);
  if (slice.name() == "stencil") {
    const fanout::ParallelModel model{Sweep{}, devices};
    return benchmarks::run_stencil(slice, [&](benchmarks::Grids& grids, Runners& runners) {
      const View<const float, 2> now(grids.now(), grids.size(), grids.size());
      model(fanout::inout(View<float, 2>(grids.next(), grids.size(), grids.size())), fanout::broadcast(now), &runners);
    });
  }
  if (slice.name() == "points") {
    const fanout::ParallelModel model{Hits{}, devices};
    return benchmarks::run_points(slice, [&](std::uint64_t pairs, Runners& runners) {
      return model(fanout::Range{pairs}, static_cast<std::size_t>(pairs), &runners);
    });
  }
  slice.fault("no case " + slice.name());
}
