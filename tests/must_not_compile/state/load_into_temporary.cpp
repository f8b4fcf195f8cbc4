// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load() would write into a temporary
#include <functional>

#include <fanout/state.hpp>

using namespace fanout::literals;

int main() {
  fanout::Tensor<float, 1> tensor;
#ifdef FANOUT_CONTROL
  fanout::load("file", fanout::dict("tensor"_k = std::ref(tensor)));
#else
  fanout::load("file", fanout::dict("tensor"_k = tensor));
#endif
}
