// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward cannot be called with its arguments (this diagnostic shows the model and the types): it takes other arguments, or more or fewer, is private or ambiguous
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::View<const float, 1> x, long scale) const { return x[0] * static_cast<float>(scale); }
  float forward(fanout::View<const float, 1> x, float scale) const { return x[0] * scale; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
#ifdef FANOUT_CONTROL
  const auto y = model(fanout::Tensor<float, 1>(4), 2L);
#else
  const auto y = model(fanout::Tensor<float, 1>(4), 2);
#endif
  return y.empty() ? 1 : 0;
}
