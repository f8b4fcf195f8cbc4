// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: reduce takes a function without state
#include <fanout/fanout.hpp>

int main() {
  const float factor = 0.5F;
  const fanout::ParallelModel model{[factor](fanout::View<const float, 1> x) {
#ifdef FANOUT_CONTROL
    return fanout::reduce(factor * x[0], [](auto a, auto b) { return a * b; });
#else
    return fanout::reduce(x[0], [factor](auto a, auto b) { return factor * a * b; });
#endif
  }};
  const float product = model(fanout::Tensor<float, 1>(4));
  (void)product;
}
