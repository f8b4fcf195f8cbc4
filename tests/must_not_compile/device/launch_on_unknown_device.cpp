// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: launch() is not defined for this kind of device
#include <cstddef>

#include <fanout/fanout.hpp>

#include "../../support/toy_device.hpp"

struct Square {
  fanout::View<double, 1> y;
  fanout::View<const double, 1> x;
  void operator()(std::size_t i) const { y[i] = x[i] * x[i]; }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Square{y, x});
    return y;
  }
};

#ifdef FANOUT_CONTROL
using D = fanout::HostDevice;
#else
using D = fanout_test::ToyDevice;
#endif

int main() {
  const fanout::ParallelModel<Model, fanout::AllVisible<D>> model{Model{}};
  const auto y = model(fanout::Tensor<double, 1>(4));
  return y.empty() ? 1 : 0;
}
