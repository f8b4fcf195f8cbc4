// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the result of forward cannot be gathered
// expect: specialises gather_traits
// expect: Segments
#include <utility>
#include <vector>

#include <fanout/fanout.hpp>
using namespace fanout::literals;

class Segments {
  std::vector<int> lengths_;

#ifdef FANOUT_CONTROL
  friend constexpr auto fields(const Segments*) { return fanout::dict("lengths"_k = &Segments::lengths_); }
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) { return std::pair{x, Segments{}}; }};
  const auto [rows, segments] = model(fanout::Tensor<float, 1>(4));  // no second error here
  (void)rows;
  (void)segments;
}
