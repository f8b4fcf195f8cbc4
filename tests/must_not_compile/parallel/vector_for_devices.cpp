// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives one
// expect: std::vector<fanout::
#include <vector>

#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

int main() {
  const std::vector<fanout::HostDevice> all = fanout::HostDevice::visible();
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{Model{}, fanout::DeviceSet(all)};
#else
  const fanout::ParallelModel model{Model{}, all};
#endif
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
