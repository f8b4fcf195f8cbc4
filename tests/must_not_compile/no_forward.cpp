// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the model has no forward(args...), forward(ctx, args...) or call operator
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Input = fanout::View<const float, 2>;
#else
using Input = fanout::View<float, 2>;  // arguments are read, not written
#endif

struct Model {
  float forward(Input x) const { return x(0, 0); }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  (void)model(fanout::Tensor<float, 2>(4, 4));
}
