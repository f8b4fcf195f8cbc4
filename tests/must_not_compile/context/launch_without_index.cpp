// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: launch() calls f(i) for each index: give f a const call operator that takes a std::size_t
#include <cstddef>

#include <fanout/fanout.hpp>

struct Zero {
  fanout::View<double, 1> y;
#ifdef FANOUT_CONTROL
  void operator()(std::size_t i) const { y[i] = 0; }
#else
  void operator()() const {}
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, fanout::View<const double, 1> x) {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Zero{y});
    return y;
  }};
  const auto y = model(fanout::Tensor<double, 1>(4));
  return y.empty() ? 1 : 0;
}
