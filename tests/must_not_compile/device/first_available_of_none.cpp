// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: FirstAvailable names at least one kind of device
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Devices = fanout::FirstAvailable<fanout::HostDevice>;
#else
using Devices = fanout::FirstAvailable<>;
#endif

int main() {
  const Devices devices;
  return static_cast<int>(sizeof devices) - 1;
}
