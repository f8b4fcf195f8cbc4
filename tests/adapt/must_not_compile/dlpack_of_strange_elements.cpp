// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: no DLPack type is known for the elements of this array; specialise fanout::dlpack_type for them
#include <fanout/adapt/dlpack.hpp>

struct Pair {
  float a, b;
};
#ifdef FANOUT_CONTROL
using Element = float;
#else
using Element = Pair;
#endif

int main() { return fanout::to_dlpack(fanout::Tensor<Element, 1>(3)) == nullptr; }
