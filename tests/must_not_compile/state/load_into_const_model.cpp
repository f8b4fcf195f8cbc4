// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: load() updates the model that it writes into, and this ParallelModel is const
#include <fanout/state.hpp>

struct Scaled {
  double factor = 2;
  double forward(double x) const { return factor * x; }
};

int main() {
#ifdef FANOUT_CONTROL
  fanout::ParallelModel model{Scaled(), fanout::host_devices(1)};
#else
  const fanout::ParallelModel model{Scaled(), fanout::host_devices(1)};
#endif
  fanout::load("file", model);
}
