// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a C array of trees is not split
// expect: Tensor<int, 1>
#include <span>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](const auto&) { return 1; }};
  const fanout::Tensor<int, 1> tensors[2]{fanout::Tensor<int, 1>(3), fanout::Tensor<int, 1>(3)};
#ifdef FANOUT_CONTROL
  (void)model(std::span(tensors));
#else
  (void)model(tensors);
#endif
}
