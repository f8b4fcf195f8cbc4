// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a view of a temporary would dangle
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Tensor<float, 1> tensor(4);
  const fanout::View<const float, 1> view = tensor;
#else
  const fanout::View<const float, 1> view = fanout::Tensor<float, 1>(4);
#endif
  return view.empty() ? 1 : 0;
}
