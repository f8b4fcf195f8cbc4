// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a Pipeline needs a stage
#include <fanout/stages.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::Pipeline net{
      fanout::stage([](fanout::View<const float, 1> x) { return fanout::psum(x[0]); }, fanout::host_devices(1))};
#else
  const fanout::Pipeline<> net;
#endif
  (void)net;
}
