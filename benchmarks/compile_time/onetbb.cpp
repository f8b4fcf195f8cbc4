// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The squares of examples/readme.cpp by oneTBB, for benchmarks/compile_time/run.
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <cstddef>
#include <iostream>
#include <vector>

int main() {
  std::vector<double> x{1.0, 2.0, 3.0, 4.0, 5.0};
  tbb::parallel_for(tbb::blocked_range<std::size_t>(0, x.size()), [&x](const tbb::blocked_range<std::size_t>& rows) {
    for (std::size_t i = rows.begin(); i < rows.end(); ++i) x[i] *= x[i];
  });
  for (const double value : x) std::cout << value << ' ';
}
