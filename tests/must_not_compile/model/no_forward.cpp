// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the model has no forward and no call operator; give it a forward(args...) or a forward(ctx, args...)
#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
#else
  float run(fanout::View<const float, 1> x) const { return x[0]; }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
