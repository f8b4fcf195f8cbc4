// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the results of a pipeline's last stage cannot be joined over the micro-batches
#include <fanout/stages.hpp>

using fanout::host_devices;
using Rows = fanout::View<const float, 1>;

int main() {
  const auto copy = [](Rows x) { return fanout::Tensor<float, 1>(x); };
  const auto last = [](Rows x) {
#ifdef FANOUT_CONTROL
    return fanout::psum(x[0]);
#else
    return x[0];
#endif
  };
  const fanout::Pipeline net{fanout::stage(copy, host_devices(1)), fanout::stage(last, host_devices(1))};
  (void)net(fanout::Tensor<float, 1>(3));
}
