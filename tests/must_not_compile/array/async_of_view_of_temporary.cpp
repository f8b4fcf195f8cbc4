// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) { return x.size(); }};
#ifdef FANOUT_CONTROL
  auto pending = model.async(fanout::Tensor<float, 1>(4));  // taken over
#else
  auto pending = model.async(fanout::View<const float, 1>(fanout::Tensor<float, 1>(4)));
#endif
  return pending.get().empty() ? 1 : 0;
}
