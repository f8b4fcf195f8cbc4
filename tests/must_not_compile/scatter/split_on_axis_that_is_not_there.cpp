// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: split<Axis>(x) of an array that has no such axis
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 2> x) { return x; }, fanout::host_devices(2)};
  const fanout::Tensor<float, 2> x(3, 4);
#ifdef FANOUT_CONTROL
  (void)model(fanout::split<-2>(x));
#else
  (void)model(fanout::split<2>(x));
#endif
}
