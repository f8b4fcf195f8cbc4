// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a ParallelModel takes its devices as a device set, or as a policy whose select() gives one
// expect: Options
#include <fanout/fanout.hpp>

struct Step {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

#ifdef FANOUT_CONTROL
using Model = fanout::ParallelModel<Step>;
#else
using Model = fanout::ParallelModel<Step, fanout::DeviceSet<fanout::HostDevice>>;
#endif

int main() { return static_cast<int>(Model(Step(), fanout::Options{.seed = 7})(fanout::Tensor<float, 1>(4))[0]); }
