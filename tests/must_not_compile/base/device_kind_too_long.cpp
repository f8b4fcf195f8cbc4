// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the name of a device kind has one to eight characters
#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::DeviceId id{.kind = "eightlet", .index = 0};
#else
  const fanout::DeviceId id{.kind = "nineletters", .index = 0};
#endif
  return id.index;
}
