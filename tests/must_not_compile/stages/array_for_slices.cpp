// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: an array is split by rows, but this model has slices, so each of its devices needs all rows
#include <fanout/stages.hpp>

struct Model {
  fanout::Slice<fanout::Tensor<float, 1>> weight;
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
    return fanout::psum(x[0] * weight.part(ctx)[0]);
  }
};

int main() {
  const fanout::ParallelModel model{Model{fanout::Tensor<float, 1>(4)}, fanout::host_devices(2)};
  const fanout::Tensor<float, 1> x(3);
#ifdef FANOUT_CONTROL
  (void)model(fanout::broadcast(x));
#else
  (void)model(x);
#endif
}
