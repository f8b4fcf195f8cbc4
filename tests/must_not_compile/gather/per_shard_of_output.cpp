// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a PerShard outlives its shards, so its values must own their memory
#include <fanout/fanout.hpp>

struct Result {
#ifdef FANOUT_CONTROL
  fanout::PerShard<fanout::Tensor<float, 1>> rows;
#else
  fanout::PerShard<fanout::Output<float, 1>> rows;
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, fanout::View<const float, 1>) {
    return Result{decltype(Result::rows)::value_type(fanout::output<float>(ctx))};
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
