// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the model is a pointer; pass the model itself, since a ParallelModel owns its model
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

int main() {
  Model original;
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{original};
#else
  const fanout::ParallelModel model{&original};
#endif
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
