// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this type is not a Device: give it id(), memory(), worker(), enter(), synchronize(), a static visible()
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

#ifdef FANOUT_CONTROL
using D = fanout::HostDevice;
#else
using D = int;
#endif

int main() {
  const fanout::ParallelModel<Model, fanout::FirstAvailable<D>> model{Model{}};
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
