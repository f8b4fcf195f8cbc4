// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: ctx.communicator() needs #include <fanout/context/collectives.hpp>
#include <fanout/fanout.hpp>
#ifdef FANOUT_CONTROL
#include <fanout/context/collectives.hpp>
#endif

int main() {
  const fanout::ParallelModel model{[](fanout::Context auto& ctx, int) { (void)ctx.communicator(); }};
  model(1);
}
