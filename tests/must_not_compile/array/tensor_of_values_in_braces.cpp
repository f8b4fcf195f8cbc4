// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Integers in braces are extents, and there is one for each axis: elements are named by fanout::tensor.
// expect: no matching
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<int, 2> x = fanout::tensor<int>({{1, 2}, {3, 4}});
#else
  const fanout::Tensor<int, 2> x{1, 2, 3, 4};
#endif
  return x.empty() ? 1 : 0;
}
