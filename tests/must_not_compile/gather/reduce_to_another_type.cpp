// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
// expect: reduce values that its function combines
#include <fanout/fanout.hpp>

struct Average {
  double operator()(auto a, auto b) const { return (a + b) / 2.0; }
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
#ifdef FANOUT_CONTROL
    return fanout::reduce(static_cast<double>(x[0]), Average{});
#else
    return fanout::reduce(static_cast<int>(x[0]), Average{});
#endif
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
