// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a stage gives the next one something else than rows
#include <fanout/stages.hpp>

using fanout::host_devices;
using Rows = fanout::View<const float, 1>;

int main() {
  const auto sum = [](Rows x) {
#ifdef FANOUT_CONTROL
    return fanout::Tensor<float, 1>(x);
#else
    return fanout::psum(x[0]);
#endif
  };
  const auto next = [](Rows x) { return fanout::psum(x[0]); };
  const fanout::Pipeline net{fanout::stage(sum, host_devices(1)), fanout::stage(next, host_devices(1))};
  (void)net(fanout::Tensor<float, 1>(3));
}
