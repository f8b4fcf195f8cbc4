// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: output<T>(ctx, extents...) and empty<T>(ctx, extents...) take the context of forward, then integers, but other types were passed
// expect: double
#include <fanout/fanout.hpp>

struct Model {
  float forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
#ifdef FANOUT_CONTROL
    const std::size_t half = x.size() / 2;
#else
    const double half = static_cast<double>(x.size()) / 2;
#endif
    auto room = fanout::empty<float>(ctx, half);
    return static_cast<float>(room.extent(0));
  }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  return model(fanout::Tensor<float, 1>(4)).empty() ? 1 : 0;
}
