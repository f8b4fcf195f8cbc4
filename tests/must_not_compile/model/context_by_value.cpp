// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward takes its context by value, and a context cannot be copied; take it by reference
#include <tuple>

#include <fanout/fanout.hpp>

struct Model {
#ifdef FANOUT_CONTROL
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const { return std::tuple{x, ctx.rank()}; }
#else
  auto forward(fanout::Context auto ctx, fanout::View<const float, 1> x) const { return std::tuple{x, ctx.rank()}; }
#endif
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto [y, ranks] = model(fanout::Tensor<float, 1>(4));  // no second error here
  return y.size() == 4 && !ranks.empty() ? 0 : 1;
}
