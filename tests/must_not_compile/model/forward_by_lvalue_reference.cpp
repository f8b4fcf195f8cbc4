// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward would write to its arguments, which it can only read; take a Tensor as View<const T, R>
#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  float forward(const fanout::View<const float, 1>& x, const float& scale) { return x[0] * scale; }
#else
  float forward(fanout::View<const float, 1>& x, float& scale) { return x[0] * scale; }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto y = model(fanout::Tensor<float, 1>(4), 2.0F);
  return y.empty() ? 1 : 0;
}
