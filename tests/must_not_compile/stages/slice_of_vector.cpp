// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a Slice holds a Tensor
#include <vector>

#include <fanout/stages.hpp>

#ifdef FANOUT_CONTROL
fanout::Slice<fanout::Tensor<float, 1>> slice;
#else
fanout::Slice<std::vector<float>> slice;
#endif

int main() {}
