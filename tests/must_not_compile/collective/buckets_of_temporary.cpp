// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: buckets of a temporary communicator would dangle
#include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, fanout::View<const float, 1> x) {
    float sum = x[0];
    auto comm = ctx.communicator();
#ifdef FANOUT_CONTROL
    auto buckets = comm.buckets();
#else
    auto buckets = ctx.communicator().buckets();
#endif
    buckets.all_reduce_async(sum);
    buckets.wait();
    return sum;
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
