// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a member of a struct cannot hold its gathered value
#include <fanout/fanout.hpp>

struct Rows {
#ifdef FANOUT_CONTROL
  fanout::Tensor<float, 1> rows;
#else
  fanout::View<const float, 1> rows;  // would show what is gone
#endif
  float scale;
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
    return fanout::first(Rows{decltype(Rows::rows)(x), 0.5F});
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
