// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/fanout.hpp>
#include <iostream>

int main() {
  fanout::ParallelModel square{[](fanout::Context auto& ctx, fanout::View<const double, 1> x) {
    auto y = fanout::output<double>(ctx);  // this shard's rows of the gathered result
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * x[i];
    return y;
  }};  // a replica on every core
  for (const double value : square(std::vector{1.0, 2.0, 3.0, 4.0, 5.0})) std::cout << value << ' ';  // 1 4 9 16 25
}
