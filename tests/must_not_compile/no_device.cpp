// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: Device
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using D = fanout::HostDevice;
#else
struct D {
  static std::vector<D> visible();
};
#endif

int main() { return sizeof(fanout::DeviceSet<D>) > 0 ? 0 : 1; }
