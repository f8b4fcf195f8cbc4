// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: model.stream() gives the results of forward, and this forward returns nothing
#include <span>
#include <vector>

#include <fanout/data.hpp>
#include <fanout/fanout.hpp>

int main() {
  const fanout::Loader loader{std::vector<int>(4), {.batch = 2}};
#ifdef FANOUT_CONTROL
  const fanout::ParallelModel model{[](std::span<const int> x) { return fanout::psum(x[0]); }};
#else
  const fanout::ParallelModel model{[](std::span<const int>) {}};
#endif
  for (auto&& sum : model.stream(loader.epoch(0))) (void)sum;
}
