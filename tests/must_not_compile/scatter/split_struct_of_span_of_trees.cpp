// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a struct that is split by rows keeps its type
#include <span>
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>

// A span of views would take the vector of their rows, which is gone when the struct is made.
using Views = std::vector<fanout::View<const float, 1>>;
struct Batch {
#ifdef FANOUT_CONTROL
  std::pair<Views, int> views;
#else
  std::pair<std::span<const fanout::View<const float, 1>>, int> views;
#endif
};

int main() {
  const fanout::ParallelModel model{[](const Batch& batch) { return batch.views.first.size(); }};
  const Views views;
  (void)model(Batch{{views, 1}});
}
