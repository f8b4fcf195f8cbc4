// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a device set names at least one kind of device
#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Set = fanout::DeviceSet<fanout::HostDevice>;
#else
using Set = fanout::DeviceSet<>;
#endif

int main() { return sizeof(Set) == 0; }
