// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: C arrays or more than 32 members lists its fields
#include <vector>

#include <fanout/fanout.hpp>

struct Many {
  std::vector<int> a1, a2, a3, a4, a5, a6, a7, a8, b1, b2, b3, b4, b5, b6, b7, b8;
  std::vector<int> c1, c2, c3, c4, c5, c6, c7, c8, d1, d2, d3, d4, d5, d6, d7, d8;
#ifndef FANOUT_CONTROL
  std::vector<int> one_too_many;
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1>) { return Many{}; }};
  (void)model(fanout::Tensor<float, 1>(4));
}
