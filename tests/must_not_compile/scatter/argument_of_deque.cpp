// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the elements of this container are not contiguous
// expect: deque<int
#include <deque>
#include <vector>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Numbers = std::vector<int>;
#else
using Numbers = std::deque<int>;
#endif

int main() {
  const fanout::ParallelModel model{[](const auto& x) { return x.size(); }};
  (void)model(Numbers{1, 2, 3});
}
