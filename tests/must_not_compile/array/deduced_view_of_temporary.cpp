// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <fanout/fanout.hpp>

int main() {
  const fanout::Tensor<float, 2> tensor(3, 5);
#ifdef FANOUT_CONTROL
  const fanout::View x = tensor;
#else
  const fanout::View x = fanout::Tensor<float, 2>(3, 5);
#endif
  return x.empty() ? 1 : 0;
}
