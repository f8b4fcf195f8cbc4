// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model whose forward is not const is copied for each device, so it must be copyable
#include <memory>

#include <fanout/fanout.hpp>

struct Model {
  std::unique_ptr<float> scale = std::make_unique<float>(2.0F);
#ifdef FANOUT_CONTROL
  float forward(fanout::View<const float, 1> x) const { return *scale * x[0]; }
#else
  float forward(fanout::View<const float, 1> x) { return *scale * x[0]; }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  (void)model(fanout::Tensor<float, 1>(4));
}
