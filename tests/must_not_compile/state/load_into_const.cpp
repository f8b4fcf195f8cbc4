// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load() writes into the tree, and a part of it is const
#include <fanout/state.hpp>

int main() {
#ifdef FANOUT_CONTROL
  fanout::Tensor<float, 1> tensor;
#else
  const fanout::Tensor<float, 1> tensor;
#endif
  fanout::load("file", tensor);
}
