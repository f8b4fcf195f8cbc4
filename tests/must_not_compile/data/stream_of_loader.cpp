// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: model.stream() takes the batches of an epoch: pass loader.epoch(e), and no loader
#include <span>
#include <vector>

#include <fanout/data.hpp>
#include <fanout/fanout.hpp>

int main() {
  const fanout::Loader loader{std::vector<int>(4), {.batch = 2}};
  const fanout::ParallelModel model{[](std::span<const int> x) { return fanout::psum(x[0]); }};
#ifdef FANOUT_CONTROL
  for (auto&& sum : model.stream(loader.epoch(0))) (void)sum;
#else
  for (auto&& sum : model.stream(loader)) (void)sum;
#endif
}
