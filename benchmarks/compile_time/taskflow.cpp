// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The squares of examples/readme.cpp by Taskflow, for benchmarks/compile_time/run.
#include <cstddef>
#include <iostream>
#include <taskflow/algorithm/for_each.hpp>
#include <taskflow/taskflow.hpp>
#include <vector>

int main() {
  std::vector<double> x{1.0, 2.0, 3.0, 4.0, 5.0};
  tf::Executor executor;
  tf::Taskflow squares;
  squares.for_each_index(std::size_t{0}, x.size(), std::size_t{1}, [&x](std::size_t i) { x[i] *= x[i]; });
  executor.run(squares).wait();
  for (const double value : x) std::cout << value << ' ';
}
