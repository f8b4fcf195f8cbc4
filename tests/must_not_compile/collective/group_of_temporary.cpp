// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a group of a temporary communicator would dangle
#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, fanout::View<const float, 1> x) {
    float sum = x[0];
    auto comm = ctx.communicator();
#ifdef FANOUT_CONTROL
    auto group = comm.group();
#else
    auto group = ctx.communicator().group();
#endif
    comm.all_reduce(sum);
    group.end();
    return sum;
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
