// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward cannot be called with its arguments (this diagnostic shows the model and the types): it takes other arguments, or more or fewer, is private or ambiguous
#include <fanout/fanout.hpp>

class Model {
#ifdef FANOUT_CONTROL
 public:
#endif
  float forward(fanout::View<const float, 1> x) const { return x[0]; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
