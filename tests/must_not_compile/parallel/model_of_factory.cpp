// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model that a factory makes on each device has no original; replica(i).model() is the one on the i-th
#include <span>

#include <fanout/fanout.hpp>

struct Session {
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  int forward(std::span<const int>) const { return 1; }
};

int main() {
  const fanout::ParallelModel model{fanout::factory([] { return Session(); }), fanout::host_devices(2)};
#ifdef FANOUT_CONTROL
  static_cast<void>(model.replica(0).model());
#else
  static_cast<void>(model.model());
#endif
}
