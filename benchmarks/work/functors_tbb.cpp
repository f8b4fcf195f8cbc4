// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functors in oneTBB with two threads, each bound to its core. Contenders halves: two parts. automatic: as many as
// oneTBB's own partitioner makes.

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/partitioner.h>
#include <tbb/task_scheduler_observer.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include <harness/cores.hpp>
#include <work/functors.hpp>

namespace {

using benchmarks::Grids;
using benchmarks::Runners;
using Range = tbb::blocked_range<std::size_t>;

class Binding : public tbb::task_scheduler_observer {
 public:
  explicit Binding(const benchmarks::Slice& slice) : slice_(slice) { observe(true); }
  ~Binding() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override { benchmarks::bind_to(slice_.core(is_worker ? 1 : 0)); }

 private:
  const benchmarks::Slice& slice_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  slice.environment(benchmarks::with_counts(slice));
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  const Binding binding(slice);
  const bool halves = slice.contender() != "automatic";
  const auto range = [halves](std::size_t total) { return halves ? Range(0, total, total / 2) : Range(0, total); };
  // Calls `run(partitioner)` with the one that was chosen.
  const auto partitioned = [halves](const auto& run) {
    return halves ? run(tbb::simple_partitioner{}) : run(tbb::auto_partitioner{});
  };

  if (slice.name() == "stencil") {
    return benchmarks::run_stencil(slice, [&](Grids& grids, Runners& runners) {
      const auto sweep = [&](const Range& rows) {
        benchmarks::sweep_rows(grids.now(), grids.next(), grids.size(), rows.begin(), rows.end());
        runners.note(rows.begin(), rows.end(), grids.size());
      };
      partitioned([&](const auto& partitioner) { tbb::parallel_for(range(grids.size()), sweep, partitioner); });
    });
  }
  if (slice.name() == "points") {
    return benchmarks::run_points(slice, [&](std::uint64_t pairs, Runners& runners) {
      const auto hits = [&](const Range& part, std::uint64_t before) {
        runners.note(part.begin(), part.end(), pairs);
        return before + benchmarks::count_hits(part.begin(), part.end());
      };
      return partitioned([&](const auto& partitioner) {
        return tbb::parallel_reduce(range(pairs), std::uint64_t{0}, hits, std::plus<>(), partitioner);
      });
    });
  }
  slice.fault("no case " + slice.name());
}
