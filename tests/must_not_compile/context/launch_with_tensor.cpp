// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: launch() copies its function to the device byte by byte
#include <cstddef>

#include <fanout/fanout.hpp>

struct Scale {
#ifdef FANOUT_CONTROL
  fanout::View<const double, 1> factors;
#else
  fanout::Tensor<double, 1> factors;
#endif
  fanout::View<double, 1> y;
  void operator()(std::size_t i) const { y[i] = factors[i]; }
};

struct Model {
  fanout::Tensor<double, 1> factors;
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Scale{factors, y});
    return y;
  }
};

int main() {
  const fanout::ParallelModel model{Model{fanout::Tensor<double, 1>(4)}};
  const auto y = model(fanout::Tensor<double, 1>(4));
  return y.empty() ? 1 : 0;
}
