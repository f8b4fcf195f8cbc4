// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the result of forward cannot be gathered
// expect: Alternative<1>
#include <memory>
#include <variant>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Second = std::monostate;
#else
using Second = std::shared_ptr<int>;
#endif

int main() {
  const fanout::ParallelModel model{[](fanout::View<const float, 1> x) { return std::variant<float, Second>(x[0]); }};
  const auto result = model(fanout::Tensor<float, 1>(4));  // no second error here
  (void)result.index();
}
