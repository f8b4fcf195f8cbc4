// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the function that update() calls takes a copy of the model, so its changes would be lost
#include <fanout/fanout.hpp>
#include <span>

struct Net {
  float weight = 1;
  auto forward(std::span<const float> x) const { return fanout::pmean(weight * x[0]); }
};

int main() {
  fanout::ParallelModel model{Net{}, fanout::host_devices(2)};
#ifdef FANOUT_CONTROL
  model.update([](Net& net) noexcept { net.weight = 2; });
  model.update([](auto&& net) { net.weight = 2; });
#else
  model.update([](Net net) noexcept { net.weight = 2; });
#endif
}
