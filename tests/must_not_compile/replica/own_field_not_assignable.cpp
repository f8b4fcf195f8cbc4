// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model with PerReplica fields must be assignable, since update() assigns the original
#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  int scale;
#else
  const int scale;
#endif
  fanout::PerReplica<int> calls;
  int forward(fanout::View<const float, 1>) const { return scale * ++*calls; }
};

int main() {
  const fanout::ParallelModel model{Model{2, 0}};
  return model(fanout::Tensor<float, 1>(4))[0] == 2 ? 0 : 1;
}
