// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the copies of this model would all change one object through a pointer, a reference or a view
// expect: FieldAt<std::shared_ptr<float>
#include <memory>
#include <utility>

#include <fanout/fanout.hpp>

struct Layer {
#ifdef FANOUT_CONTROL
  std::shared_ptr<const float> scale = std::make_shared<float>(2.0F);
#else
  std::shared_ptr<float> scale = std::make_shared<float>(2.0F);
#endif
};

struct Model {
  int calls = 0;
  std::pair<int, Layer> layer;
  auto forward(fanout::View<const float, 1> x) { return std::pair{x, *layer.second.scale}; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto [y, scales] = model(fanout::Tensor<float, 1>(4));  // no second error here
  return y.size() == 4 && !scales.empty() ? 0 : 1;
}
