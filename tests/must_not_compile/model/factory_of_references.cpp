// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: and returns the model by value
#include <span>
#include <vector>

#include <fanout/fanout.hpp>

struct Session {
  int forward(std::span<const int> x) const { return x[0]; }
};

int main() {
  static Session session;
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{fanout::factory([](const auto&) { return session; }), fanout::host_devices(2)};
#else
  const fanout::ParallelModel model{fanout::factory([](const auto&) -> Session& { return session; }),
                                    fanout::host_devices(2)};
#endif
  return static_cast<int>(model(std::vector{1, 2})[0]);  // no second error here
}
