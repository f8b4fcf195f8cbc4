// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a field of the model cannot be combined after a call
#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  fanout::Mean<double> rows;
#else
  fanout::Mean<long> rows;
#endif
  int forward(fanout::View<const float, 1>) {
    rows.value += 1;
    return 0;
  }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  return model(fanout::Tensor<float, 1>(4)).size() == 1 ? 0 : 1;
}
