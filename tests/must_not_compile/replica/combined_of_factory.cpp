// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: fields of models that a factory makes are not combined after a call
#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  struct Count {
    long value = 0;
  } rows;
#else
  fanout::Sum<long> rows;
#endif
  int forward(fanout::View<const float, 1>) {
    rows.value += 1;
    return 0;
  }
};

int main() {
  const fanout::ParallelModel model{fanout::factory([] { return Model{}; })};
  return model(fanout::Tensor<float, 1>(4)).size() == 1 ? 0 : 1;
}
