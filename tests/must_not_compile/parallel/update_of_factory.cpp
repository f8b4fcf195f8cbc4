// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model that a factory makes on each device has no original that update() could change and copy
#include <span>

#include <fanout/fanout.hpp>

struct Scale {
  int factor = 2;
  int forward(std::span<const int> x) const { return factor * x[0]; }
};

int main() {
#ifdef FANOUT_CONTROL
  fanout::ParallelModel model{Scale(), fanout::host_devices(2)};
#else
  fanout::ParallelModel model{fanout::factory([] { return Scale(); }), fanout::host_devices(2)};
#endif
  model.update([](Scale& scale) { scale.factor = 3; });
}
