// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
// expect: pmean floating and complex ones
// expect: rules::Mean, int
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
#ifdef FANOUT_CONTROL
    return fanout::pmean(x[0]);
#else
    return fanout::pmean(static_cast<int>(x[0]));
#endif
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
