// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a member of a struct cannot hold its gathered value
#include <fanout/fanout.hpp>

struct Statistics {
#ifdef FANOUT_CONTROL
  fanout::Mean<float> mean;
#else
  float mean;
#endif
};

struct Result {
  fanout::Tensor<float, 1> rows;
  Statistics statistics;
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) {
    return Result{fanout::Tensor<float, 1>(x), {x[0]}};
  }};
  const Result result = model(fanout::Tensor<float, 1>(4));  // no second error here
  (void)result.statistics.mean;
}
