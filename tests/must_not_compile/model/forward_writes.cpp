// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward would write to its arguments, which it can only read; take a Tensor as View<const T, R>
// expect: View<const float, 1>
#include <tuple>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Input = fanout::View<const float, 1>;
#else
using Input = fanout::View<float, 1>;
#endif

struct Model {
  auto forward(fanout::Context auto& ctx, Input x) const { return std::tuple{x, ctx.rank()}; }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto [y, ranks] = model(fanout::Tensor<float, 1>(4));  // no second error here
  return y.size() == 4 && !ranks.empty() ? 0 : 1;
}
