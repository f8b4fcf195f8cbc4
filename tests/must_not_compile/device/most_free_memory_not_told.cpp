// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: MostFreeMemory needs free_memory(), and this kind of device has none; use AllVisible
#include <fanout/device/most_free_memory.hpp>
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Devices = fanout::AllVisible<fanout::HostDevice>;
#else
using Devices = fanout::MostFreeMemory<fanout::HostDevice>;
#endif

int main() {
  const auto square = [](fanout::View<const float, 1> x) { return x[0] * x[0]; };
  const fanout::ParallelModel model{square, Devices{}};
  (void)model(fanout::Tensor<float, 1>(4));
}
