// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 2> tensor(4, 4);
  const auto shown = tensor.values();
#else
  const auto shown = fanout::Tensor<float, 2>(4, 4).values();
#endif
  return shown.empty() ? 1 : 0;
}
