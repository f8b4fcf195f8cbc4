// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: apply() needs a model with a const forward
#include <tuple>

#include <fanout/fanout.hpp>

struct Model {
  int forward(int x) const { return x; }
};
struct Counter {
  int calls = 0;
#ifdef FANOUT_CONTROL
  int forward(int x) const { return calls + x; }
#else
  int forward(int x) { return calls += x; }
#endif
};

int main() {
  const auto devices = fanout::host_devices(2);
  (void)fanout::apply(std::tuple{Model{}, Counter{}}, devices, fanout::scatter(devices, 1));
}
