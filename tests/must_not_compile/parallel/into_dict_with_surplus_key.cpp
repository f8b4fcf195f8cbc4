// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a result cannot be written into its destination
#include <fanout/fanout.hpp>

int main() {
  using namespace fanout::literals;
  const fanout::ParallelModel model{[](fanout::View<const float, 2> x) { return fanout::dict("x"_k = x); },
                                    fanout::host_devices(2)};
  const fanout::Tensor<float, 2> x(3, 4);
#ifdef FANOUT_CONTROL
  auto result = fanout::dict("x"_k = x);
#else
  auto result = fanout::dict("y"_k = x, "x"_k = x);
#endif
  model.into(result)(x);
}
