// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of a std::vector<bool> cannot be pointed to
#include <vector>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](const auto&) { return 1; }};
#ifdef FANOUT_CONTROL
  (void)model(fanout::broadcast(std::vector<bool>(4)));
#else
  (void)model(std::vector<bool>(4));
#endif
}
