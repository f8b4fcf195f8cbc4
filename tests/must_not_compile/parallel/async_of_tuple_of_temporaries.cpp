// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: an asynchronous call reads its arguments later, when the temporaries in a tuple of rvalue references are destroyed
#include <tuple>

#include <fanout/fanout.hpp>

int main() {
  const fanout::ParallelModel model{[](const auto& pair) { return std::get<0>(pair).size(); }};
#ifdef FANOUT_CONTROL
  auto pending = model.async(std::tuple{fanout::Tensor<float, 1>(4), 1});
#else
  auto pending = model.async(std::forward_as_tuple(fanout::Tensor<float, 1>(4), 1));
#endif
  return pending.get().empty() ? 1 : 0;
}
