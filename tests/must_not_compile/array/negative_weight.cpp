// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: constexpr
// expect: refuse_weight
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  constexpr fanout::WeightedSplit split{50, 3};
#else
  constexpr fanout::WeightedSplit split{50, -3};
#endif
  return split(100, 2).size() == 2 ? 0 : 1;
}
