// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The network by calls of OpenBLAS, which runs them on `threads` threads of its own; bias and ReLU run in the caller.
// block=N: N rows at a time through all layers, which OpenBLAS does not share out among its threads.

#include <cstddef>
#include <string>

#include <harness/slice.hpp>
#include <work/counting.hpp>
#include <work/gemm.hpp>
#include <work/mlp.hpp>
#include <work/pin_others.hpp>

int main(int argc, char** argv) {
  benchmarks::Slice slice(argc, argv);
  if (slice.name() != "mlp") slice.fault("no case " + slice.name());
  const auto rows = static_cast<std::size_t>(slice.number("rows", 64));
  const auto width = static_cast<std::size_t>(slice.number("width", 256));
  const auto block = static_cast<std::size_t>(slice.number("block", 0));
  const auto threads = static_cast<int>(slice.number("threads", 2));
  slice.environment(benchmarks::with_counts(slice, {{"OPENBLAS_NUM_THREADS", std::to_string(threads)}}));

  const benchmarks::Mlp mlp(rows, width);
  const std::size_t rows_at_a_time = block == 0 ? rows : block;
  benchmarks::Floats between(rows_at_a_time * width);
  benchmarks::Floats y(rows * width);
  const auto call = [&] {
    benchmarks::run_layers(mlp.input.data(), rows, width, rows_at_a_time, mlp.weights, mlp.bias, between.data(),
                           y.data());
  };
  call();
  mlp.check(slice, y.data());
  benchmarks::pin_others(slice.core(1));
  slice.pin_caller();
  auto report = benchmarks::measure_and_count(slice, call);
  mlp.set_rate(report).print();
}
