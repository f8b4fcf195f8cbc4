// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a rule cannot gather the value that forward returns under it
// expect: rules::Stack, std::vector<std::
#include <string>
#include <vector>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1>) {
#ifdef FANOUT_CONTROL
    return fanout::stack(std::string("text"));
#else
    return fanout::stack(std::vector<std::string>(2));
#endif
  }};
  (void)model(fanout::Tensor<float, 1>(4));
}
