// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors by hand in OpenMP, on a team of two that is bound to two cores. Contenders default, active and passive:
// a parallel region for each call, which waits as OMP_WAIT_POLICY says. region: one region around 64 calls, with a
// barrier after each.

#include <omp.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include <dispatch/openmp.hpp>
#include <harness/load.hpp>
#include <harness/samples.hpp>
#include <harness/ticks.hpp>
#include <work/functors.hpp>

namespace {

using benchmarks::Grids;
using benchmarks::Runners;
using benchmarks::Slice;

/// The rows of one of two threads.
struct Half {
  std::size_t begin;
  std::size_t end;

  explicit Half(std::size_t total) : Half(total, static_cast<std::size_t>(omp_get_thread_num())) {}
  Half(std::size_t total, std::size_t thread) : begin(thread * (total / 2)), end(thread == 0 ? total / 2 : total) {}
};

void sweep_half(const float* now, float* next, std::size_t size, Runners& runners) {
  const Half half(size);
  benchmarks::sweep_rows(now, next, size, half.begin, half.end);
  runners.note(half.begin, half.end, size);
}

constexpr int calls_in_region = 64;  // even, so that the grids are afterwards where they were

void sweep_in_region(Grids& grids, Runners& runners) {
#pragma omp parallel num_threads(2)
  {
    float* now = grids.now();
    float* next = grids.next();
    for (int call = 0; call < calls_in_region; ++call) {
      sweep_half(now, next, grids.size(), runners);
      std::swap(now, next);
#pragma omp barrier
    }
  }
  runners.count();
}

int run_region(Slice& slice) {
  Grids grids(static_cast<std::size_t>(slice.number("size", 256)));
  slice.all_keys_read();
  Runners runners;
#pragma omp parallel num_threads(2)
  sweep_half(grids.now(), grids.next(), grids.size(), runners);
  grids.check(slice);
  const auto time = static_cast<std::int64_t>(slice.seconds() * 1e9);
  for (std::int64_t end = benchmarks::nanoseconds() + time / 10; benchmarks::nanoseconds() < end;) {
    sweep_in_region(grids, runners);
  }
  benchmarks::Samples samples;
  const benchmarks::TickRate rate;
  const benchmarks::Load load;
  for (std::int64_t end = benchmarks::nanoseconds() + time; benchmarks::nanoseconds() < end;) {
    const std::int64_t begin = benchmarks::ticks();
    sweep_in_region(grids, runners);
    samples.add((benchmarks::ticks() - begin) / calls_in_region);
  }
  slice.report(samples, load, rate).set("two_threads", runners.two_threads()).set("timer_ns", 0).print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice, benchmarks::openmp_environment(slice)));
  if (slice.name() == "stencil") {
    if (slice.contender() == "region") return run_region(slice);
    return benchmarks::run_stencil(slice, [](Grids& grids, Runners& runners) {
#pragma omp parallel num_threads(2)
      sweep_half(grids.now(), grids.next(), grids.size(), runners);
    });
  }
  if (slice.name() == "points") {
    return benchmarks::run_points(slice, [](std::uint64_t pairs, Runners& runners) {
      std::uint64_t hits = 0;
#pragma omp parallel num_threads(2) reduction(+ : hits)
      {
        const Half half(pairs);
        runners.note(half.begin, half.end, pairs);
        hits += benchmarks::count_hits(half.begin, half.end);
      }
      return hits;
    });
  }
  slice.fault("no case " + slice.name());
}
