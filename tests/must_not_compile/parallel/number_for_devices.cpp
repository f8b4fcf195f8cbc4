// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives one
// expect: DeviceSource
// expect: int
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{Model{}, fanout::host_devices(2), {.seed = 7}};
#else
  const fanout::ParallelModel model{Model{}, 2, {.seed = 7}};
#endif
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.size() == model.devices().size() ? 0 : 1;
}
