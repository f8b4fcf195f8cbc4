// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of a tensor are aligned to 64 bytes or less
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
struct alignas(64) Element {
#else
struct alignas(128) Element {
#endif
  float x[16];
};

int main() { return sizeof(fanout::Tensor<Element, 1>) == 0; }
