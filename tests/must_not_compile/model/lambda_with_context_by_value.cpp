// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward takes its context by value, and a context cannot be copied; take it by reference
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{[](auto& ctx, fanout::View<const float, 1>) { return ctx.rank(); }};
#else
  const fanout::ParallelModel model{[](auto ctx, fanout::View<const float, 1>) { return ctx.rank(); }};
#endif
  const auto y = model(fanout::Tensor<float, 1>(4));
  return y.empty() ? 1 : 0;
}
