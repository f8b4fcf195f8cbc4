// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: or that is given as per_replica, is copied for each device, so it must be copyable
#include <memory>
#include <utility>

#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  std::shared_ptr<const float> scale = std::make_shared<float>(2.0F);
#else
  std::unique_ptr<float> scale = std::make_unique<float>(2.0F);
#endif
  auto forward(fanout::View<const float, 1> x) const { return std::pair{x, *scale}; }
};

int main() {
  const fanout::ParallelModel model{fanout::per_replica(Model{})};
  const auto [y, scales] = model(fanout::Tensor<float, 1>(4));  // no second error here
  return y.size() == 4 && !scales.empty() ? 0 : 1;
}
