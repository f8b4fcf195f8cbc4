// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns rows(v) of a variable, and v is destroyed before the rows are gathered
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const int, 1> x) {
    std::vector<fanout::Tensor<int, 1>> v(x.size());
#ifdef FANOUT_CONTROL
    return fanout::rows(std::move(v));
#else
    return fanout::rows(v);
#endif
  }};
  (void)model(fanout::Tensor<int, 1>(4));
}
