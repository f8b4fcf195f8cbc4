// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a struct that is split by rows keeps its type, so its arrays must be View<const T, R>
// expect: specialise scatter_traits
#include <fanout/fanout.hpp>

struct Batch {
#ifdef FANOUT_CONTROL
  fanout::View<const float, 1> x;
#else
  fanout::Tensor<float, 1> x;
#endif
  float rate;
};

int main() {
  const fanout::ParallelModel model{[](const Batch& batch) { return batch.rate; }};
  const fanout::Tensor<float, 1> x(4);
  (void)model(Batch{x, 0.5F});
}
