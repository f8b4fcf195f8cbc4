// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the result of forward cannot be gathered
// expect: std::multimap<int, float
#include <map>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Map = std::map<int, float>;
#else
using Map = std::multimap<int, float>;
#endif

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) { return Map{{1, x[0]}}; }};
  (void)model(fanout::Tensor<float, 1>(4));
}
