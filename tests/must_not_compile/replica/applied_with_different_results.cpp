// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: models that are applied together return one type
#include <tuple>

#include <fanout/fanout.hpp>

struct Half {
  double forward(int x) const { return x / 2.0; }
};
struct Twice {
#ifdef FANOUT_CONTROL
  double forward(int x) const { return x * 2.0; }
#else
  int forward(int x) const { return x * 2; }
#endif
};

int main() {
  const auto devices = fanout::host_devices(2);
  (void)fanout::apply(std::tuple{Half{}, Twice{}}, devices, fanout::scatter(devices, 1));
}
