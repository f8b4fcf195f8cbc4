// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a tensor takes one extent for each of its axes
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 2> x({3, 5});
#else
  const fanout::Tensor<float, 2> x({3});
#endif
  return x.empty() ? 1 : 0;
}
