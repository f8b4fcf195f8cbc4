// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 2> tensor(3, 5);
  const auto x = fanout::rows_of(tensor);
#else
  const auto x = fanout::rows_of(fanout::Tensor<float, 2>(3, 5));
#endif
  return x.empty() ? 1 : 0;
}
