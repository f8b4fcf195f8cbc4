// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that is closed after its calls. Its wait policy lies in it.
#include <fanout/fanout.hpp>

namespace {

struct Own {
  static constexpr fanout::WaitRules rules{.spin = 300'000, .predicts = true};
};

}  // namespace

/// Makes so many calls of a model of its own, on two devices. Returns the sum of what they return, two each.
extern "C" __attribute__((visibility("default"))) int plugin_calls(int calls);
int plugin_calls(int calls) {
  const fanout::ParallelModel model{[](fanout::View<const int, 1> x) { return x[0] + 1; },
                                    fanout::host_devices({.count = 2, .wait = Own{}})};
  const fanout::Tensor<int, 1> x(2);
  int sum = 0;
  for (int i = 0; i < calls; ++i) {
    const auto parts = model(x);
    sum += parts(0) + parts(1);
  }
  return sum;
}
