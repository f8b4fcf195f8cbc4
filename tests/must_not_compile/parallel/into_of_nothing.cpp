// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns nothing that could be written into a destination
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{[](fanout::View<const float, 2> x) { return x; }, fanout::host_devices(2)};
#else
  const fanout::ParallelModel model{[](fanout::View<const float, 2>) {}, fanout::host_devices(2)};
#endif
  const fanout::Tensor<float, 2> x(3, 4);
  fanout::Tensor<float, 2> result(3, 4);
  model.into(result)(x);
}
