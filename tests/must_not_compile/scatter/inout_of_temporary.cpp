// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: inout(x) is for an array of yours that can be written and outlives the call
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

int main() {
  std::vector numbers{1, 2, 3};
#ifdef FANOUT_CONTROL
  fanout::inout(numbers);
#else
  fanout::inout(std::move(numbers));
#endif
}
