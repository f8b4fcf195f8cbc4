// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: inout(x) is for an array of yours that can be written and outlives the call
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  fanout::Tensor<float, 2> x(3, 4);
#else
  const fanout::Tensor<float, 2> x(3, 4);
#endif
  fanout::inout(x.view());
}
