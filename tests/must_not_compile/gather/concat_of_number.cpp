// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
// expect: concat<Axis> takes tensors, views and outputs with more than Axis axes
#include <tuple>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 2> x) {
#ifdef FANOUT_CONTROL
    return fanout::concat<1>(std::tuple{x});
#else
    return fanout::concat<1>(std::tuple{x, x(0, 0)});
#endif
  }};
  (void)model(fanout::Tensor<float, 2>(4, 4));
}
