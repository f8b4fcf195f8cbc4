// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model that a factory makes on each device has no original to save or load
#include <fanout/state.hpp>

struct Doubled {
  int forward(int x) const { return 2 * x; }
};

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{Doubled(), fanout::host_devices(1)};
#else
  const fanout::ParallelModel model{fanout::factory([](fanout::HostDevice) { return Doubled(); }),
                                    fanout::host_devices(1)};
#endif
  fanout::save("file", model);
}
