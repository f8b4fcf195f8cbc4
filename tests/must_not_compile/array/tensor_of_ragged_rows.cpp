// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: all rows of a tensor must have the same length
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 2> x = fanout::tensor<float>({{1, 2}, {3, 4}});
#else
  const fanout::Tensor<float, 2> x = fanout::tensor<float>({{1, 2}, {3}});
#endif
  return x.empty() ? 1 : 0;
}
