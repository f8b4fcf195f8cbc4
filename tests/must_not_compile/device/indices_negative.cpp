// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: Indices counts devices from 0, and has no negative ones
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  using Devices = fanout::Indices<fanout::HostDevice, 0, 2>;
#else
  using Devices = fanout::Indices<fanout::HostDevice, 0, -1>;
#endif
  const auto square = [](fanout::View<const float, 1> x) { return x[0] * x[0]; };
  const fanout::ParallelModel model{square, Devices{}};
  (void)model(fanout::Tensor<float, 1>(4));
}
