// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the type of this ParallelModel names other devices than it is given
// expect: AllVisible
// expect: DeviceSet<
#include <fanout/fanout.hpp>

struct Step {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

class Simulation {
 public:
  Simulation() : step_(Step(), fanout::host_devices(2), {.seed = 7}) {}
  float operator()(const fanout::Tensor<float, 1>& x) const { return step_(x)[0]; }

 private:
#ifdef FANOUT_CONTROL
  fanout::ParallelModel<Step, fanout::DeviceSet<fanout::HostDevice>> step_;
#else
  fanout::ParallelModel<Step> step_;
#endif
};

int main() { return static_cast<int>(Simulation()(fanout::Tensor<float, 1>(4))); }
