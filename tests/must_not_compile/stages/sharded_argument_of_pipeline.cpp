// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a pipeline cuts its arguments into micro-batches, so none can be sharded
#include <fanout/stages.hpp>

using fanout::host_devices;
using Rows = fanout::View<const float, 1>;

int main() {
  const auto copy = [](Rows x) { return fanout::Tensor<float, 1>(x); };
  const fanout::Pipeline net{fanout::stage(copy, host_devices(1)), fanout::stage(copy, host_devices(1))};
  const fanout::Tensor<float, 1> x(3);
#ifdef FANOUT_CONTROL
  (void)net(x);
#else
  const fanout::ParallelModel model{[](Rows part) { return fanout::sharded(fanout::Tensor<float, 1>(part)); },
                                    host_devices(1)};
  (void)net(model(x));
#endif
}
