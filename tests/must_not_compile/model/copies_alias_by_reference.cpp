// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the copies of this model would all change one object through a pointer, a reference or a view
#include <fanout/fanout.hpp>

struct Model {
  float scale;
#ifdef FANOUT_CONTROL
  const int& step;
#else
  int& step;
#endif
  int calls;
  int forward(fanout::View<const float, 1>) { return calls += step; }
};

int main() {
  int step = 1;
  const fanout::ParallelModel model{Model{2.0F, step, 0}};
  return model(fanout::Tensor<float, 1>(4))[0] == 1 ? 0 : 1;
}
