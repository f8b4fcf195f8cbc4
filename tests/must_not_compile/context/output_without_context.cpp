// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: output<T>(ctx, extents...) and empty<T>(ctx, extents...) take the context of forward, then integers, but other types were passed
// expect: short
#include <fanout/fanout.hpp>

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 2> x) const {
    const short columns = 3;
#ifdef FANOUT_CONTROL
    auto y = fanout::output<float>(ctx, columns);
#else
    auto y = fanout::output<float>(columns);
#endif
    for (std::size_t i = 0; i < x.extent(0) && ctx.size() != 0; ++i) y(i, 0) = x(i, 0);
    return y;
  }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  return model(fanout::Tensor<float, 2>(4, 4)).size() == 12 ? 0 : 1;
}
