// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a result cannot be written into its destination
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 2> x) { return x; }, fanout::host_devices(2)};
  const fanout::Tensor<float, 2> x(3, 4);
#ifdef FANOUT_CONTROL
  fanout::Tensor<float, 2> result(3, 4);
#else
  fanout::Tensor<double, 2> result(3, 4);
#endif
  model.into(result)(x);
}
