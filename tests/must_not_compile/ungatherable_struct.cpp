// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: forward returns something that cannot be gathered
#include <fanout/fanout.hpp>

struct Statistics {
  float mean, variance;
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
    const Statistics statistics{x[0], x[1]};
#ifdef FANOUT_CONTROL
    return std::pair{statistics.mean, statistics.variance};
#else
    return statistics;
#endif
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
