// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
#include <tuple>

#include <fanout/fanout.hpp>

int main() {
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model {
    [](int x) {
      return fanout::sharded(std::tuple{x, x});
    },
#else
  const fanout::ParallelModel model{[](int x) { return fanout::sharded(std::tuple{x, fanout::psum(x)}); },
#endif
        fanout::host_devices(2)
  };
  (void)model(1);
}
