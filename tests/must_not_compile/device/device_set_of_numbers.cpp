// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this type is not a Device: give it id(), memory(), worker(), enter(), synchronize(), a static visible()
// expect: int
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const auto devices = fanout::host_devices(2);
#else
  const fanout::DeviceSet<int> devices({0, 1});
#endif
  return devices.size() == 2 ? 0 : 1;
}
