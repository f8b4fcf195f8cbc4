// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: fields that are combined after each call, such as Mean<T>, are not for the model of a stage
#include <fanout/stages.hpp>

using fanout::host_devices;

struct Counts {
#ifdef FANOUT_CONTROL
  int rows = 0;
#else
  fanout::Sum<int> rows = 0;
#endif
  auto forward(fanout::View<const float, 1> x) {
    rows = rows + static_cast<int>(x.size());
    return fanout::Tensor<float, 1>(x);
  }
};

int main() {
  const fanout::Pipeline net{fanout::stage(Counts{}, host_devices(1)), fanout::stage(Counts{}, host_devices(1))};
  (void)net(fanout::Tensor<float, 1>(3));
}
