// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward cannot be called with its arguments (this diagnostic shows the model and the types): it takes other arguments, or more or fewer, is private or ambiguous
// expect: View<const float, 2>
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Input = fanout::View<const float, 2>;
#else
using Input = fanout::View<const float, 1>;
#endif

struct Model {
  float forward(Input x) const { return x.data()[0]; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto y = model(fanout::Tensor<float, 2>(4, 4));
  return y.empty() ? 1 : 0;
}
