// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: this type is not a wait policy
#include <fanout/fanout.hpp>

int main() {
  fanout::HostDeviceOptions options;
#ifdef FANOUT_CONTROL
  options.wait = fanout::Park{};
#else
  options.wait = 5;
#endif
  return options.wait == fanout::Waiting(fanout::Spin{}) ? 1 : 0;
}
