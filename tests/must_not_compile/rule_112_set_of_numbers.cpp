// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the result of forward cannot be gathered
// expect: std::set<int
#include <set>
#include <vector>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Seen = std::vector<int>;
#else
using Seen = std::set<int>;
#endif

int main() {
  const fanout::ParallelModel model{[](fanout::View<const int, 1> x) { return Seen(x.begin(), x.end()); }};
  (void)model(fanout::Tensor<int, 1>(4));
}
