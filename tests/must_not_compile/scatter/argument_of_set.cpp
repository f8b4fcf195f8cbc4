// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of this container are not contiguous
// expect: set<int
#include <set>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](const auto& x) { return x.size(); }};
  const std::set<int> numbers{1, 2, 3};
#ifdef FANOUT_CONTROL
  (void)model(fanout::broadcast(numbers));
#else
  (void)model(numbers);
#endif
}
