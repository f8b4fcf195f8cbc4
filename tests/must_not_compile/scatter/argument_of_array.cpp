// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a std::array may be meant as rows or as one value for every replica
// expect: array<double, 3
#include <array>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](const auto& x) { return x.size(); }};
  const std::array<double, 3> point{1, 2, 3};
#ifdef FANOUT_CONTROL
  (void)model(fanout::broadcast(point));
  (void)model(fanout::rows(point));
#else
  (void)model(point);
#endif
}
