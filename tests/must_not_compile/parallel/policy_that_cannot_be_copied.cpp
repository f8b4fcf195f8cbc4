// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives one
// expect: copy
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

struct Policy {
  Policy() = default;
#ifndef FANOUT_CONTROL
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
#endif
  fanout::DeviceSet<fanout::HostDevice> select() const { return fanout::host_devices(2); }
};

int main() {
  const fanout::ParallelModel<Model, Policy> model{Model{}};
  return model.devices().size() == 2 ? 0 : 1;
}
