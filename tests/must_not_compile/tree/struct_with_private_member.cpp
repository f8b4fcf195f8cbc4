// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: with private members, base classes, constructors,
#include <vector>

#include <fanout/fanout.hpp>
using namespace fanout::literals;

class Counts {
  std::vector<int> counts_;

#ifdef FANOUT_CONTROL
  friend constexpr auto fields(const Counts*) { return fanout::dict("counts"_k = &Counts::counts_); }
#endif
};

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1>) { return Counts{}; }};
  (void)model(fanout::Tensor<float, 1>(4));
}
