// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a factory is called as f(device) or f(), as const and for all devices at the same time, and returns
#include <span>
#include <vector>

#include <fanout/fanout.hpp>

struct Session {
  int number = 0;
  int forward(std::span<const int> x) const { return number + x[0]; }
};

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{fanout::factory([] { return Session{1}; }), fanout::host_devices(2)};
#else
  const fanout::ParallelModel model{fanout::factory([next = 0]() mutable { return Session{next++}; }),
                                    fanout::host_devices(2)};
#endif
  return static_cast<int>(model(std::vector{1, 2})[0]);  // no second error here
}
