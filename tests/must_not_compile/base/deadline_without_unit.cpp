// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a time needs a unit, such as std::chrono::milliseconds(50)
#include <chrono>

#include <fanout/fanout.hpp>

int main() {
  fanout::Options options;
#ifdef FANOUT_CONTROL
  options.deadline = std::chrono::milliseconds(50);
#else
  options.deadline = 50;
#endif
  return options.deadline == fanout::Duration::forever() ? 1 : 0;
}
