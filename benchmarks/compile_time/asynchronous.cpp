// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The squares of examples/readme.cpp, by an asynchronous call. benchmarks/compile_time/run measures what it costs to
// compile.
#include <cstddef>
#include <fanout/fanout.hpp>
#include <iostream>
#include <vector>

int main() {
  fanout::ParallelModel square{[](fanout::Context auto& ctx, fanout::View<const double, 1> x) {
    auto y = fanout::output<double>(ctx);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
    return y;
  }};
  auto pending = square.async(std::vector{1.0, 2.0, 3.0, 4.0, 5.0});
  for (const double value : pending.get()) std::cout << value << ' ';
}
