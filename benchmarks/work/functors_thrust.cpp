// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors in Thrust on its OpenMP backend. Contenders halves: two parts. rows: for stencil, a call for each row.

#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/system/omp/execution_policy.h>
#include <thrust/transform_reduce.h>

#include <cstddef>
#include <cstdint>

#include <dispatch/openmp.hpp>
#include <work/functors.hpp>

int main(int argc, char** argv) {
  using benchmarks::Runners;
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice, benchmarks::openmp_environment(slice)));
  const thrust::counting_iterator<std::size_t> parts(0);
  if (slice.name() == "stencil") {
    const bool by_rows = slice.contender() == "rows";
    return benchmarks::run_stencil(slice, [&](benchmarks::Grids& grids, Runners& runners) {
      const std::size_t size = by_rows ? 1 : grids.size() / 2;
      thrust::for_each_n(thrust::omp::par, parts, grids.size() / size, [&, size](std::size_t i) {
        benchmarks::sweep_rows(grids.now(), grids.next(), grids.size(), i * size, (i + 1) * size);
        runners.note(i * size, (i + 1) * size, grids.size());
      });
    });
  }
  if (slice.name() == "points") {
    return benchmarks::run_points(slice, [&](std::uint64_t pairs, Runners& runners) {
      const auto hits_in_half = [&](std::size_t i) {
        runners.note(i * (pairs / 2), (i + 1) * (pairs / 2), pairs);
        return benchmarks::count_hits(i * (pairs / 2), (i + 1) * (pairs / 2));
      };
      return thrust::transform_reduce(thrust::omp::par, parts, parts + 2, hits_in_half, std::uint64_t{0},
                                      thrust::plus<>());
    });
  }
  slice.fault("no case " + slice.name());
}
