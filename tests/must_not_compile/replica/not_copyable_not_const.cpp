// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model whose forward is not const, or that is given as per_replica, is copied for each device
#include <memory>
#include <utility>

#include <fanout/fanout.hpp>

struct Model {
  std::unique_ptr<float> scale = std::make_unique<float>(2.0F);
#ifdef FANOUT_CONTROL
  auto forward(fanout::View<const float, 1> x) const { return std::pair{x, *scale}; }
#else
  auto forward(fanout::View<const float, 1> x) { return std::pair{x, *scale}; }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto [y, scales] = model(fanout::Tensor<float, 1>(4));  // no second error here
  return y.size() == 4 && !scales.empty() ? 0 : 1;
}
