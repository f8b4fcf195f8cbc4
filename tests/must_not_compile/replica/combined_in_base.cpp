// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a class with base classes or C arrays around it lists its fields
#include <fanout/fanout.hpp>

using namespace fanout::literals;

struct Layer {
  fanout::Sum<long> rows;
};

struct Model : Layer {
  int calls = 0;
  int forward(fanout::View<const float, 1>) {
    rows.value += 1;
    return ++calls;
  }
#ifdef FANOUT_CONTROL
  friend constexpr auto fields(const Model*) { return fanout::dict("rows"_k = &Model::rows); }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  return model(fanout::Tensor<float, 1>(4)).size() == 1 ? 0 : 1;
}
