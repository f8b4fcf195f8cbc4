// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oneTBB with two threads, each bound to its core by an observer: contenders parallel_for, parallel_invoke and, on top
// of it, the standard library's for_each with std::execution::par.

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <array>
#include <execution>

#include <dispatch/cases.hpp>

namespace {

using benchmarks::Bodies;

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
  slice.environment();
  const std::string contender = slice.contender() == "default" ? "parallel_for" : slice.contender();
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  const Binding binding(slice);
  if (contender == "parallel_for") {
    return benchmarks::run_dispatch(slice, [](const Bodies& bodies) {
      tbb::parallel_for(
          std::size_t{0}, std::size_t{2}, [&bodies](std::size_t i) { bodies(i); }, tbb::simple_partitioner{});
    });
  }
  if (contender == "parallel_invoke") {
    return benchmarks::run_dispatch(
        slice, [](const Bodies& bodies) { tbb::parallel_invoke([&bodies] { bodies(0); }, [&bodies] { bodies(1); }); });
  }
  if (contender == "for_each_par") {
    static constexpr std::array<std::size_t, 2> both{0, 1};
    return benchmarks::run_dispatch(slice, [](const Bodies& bodies) {
      std::for_each(std::execution::par, both.begin(), both.end(), [&bodies](std::size_t i) { bodies(i); });
    });
  }
  slice.fault("no contender " + contender);
}
