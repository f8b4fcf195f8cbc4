// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a Slice is cut on an axis of its Tensor
#include <fanout/stages.hpp>

#ifdef FANOUT_CONTROL
fanout::Slice<fanout::Tensor<float, 1>, 0> slice;
#else
fanout::Slice<fanout::Tensor<float, 1>, 1> slice;
#endif

int main() {}
