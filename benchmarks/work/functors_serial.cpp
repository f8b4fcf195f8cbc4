// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors on one thread.

#include <cstddef>
#include <cstdint>

#include <work/functors.hpp>

int main(int argc, char** argv) {
  using benchmarks::Runners;
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice));
  if (slice.name() == "stencil") {
    return benchmarks::run_stencil(slice, [](benchmarks::Grids& grids, Runners& runners) {
      benchmarks::sweep_rows(grids.now(), grids.next(), grids.size(), 0, grids.size());
      runners.note(0, grids.size(), grids.size());
    });
  }
  if (slice.name() == "points") {
    return benchmarks::run_points(slice, [](std::uint64_t pairs, Runners& runners) {
      runners.note(0, pairs, pairs);
      return benchmarks::count_hits(0, pairs);
    });
  }
  slice.fault("no case " + slice.name());
}
