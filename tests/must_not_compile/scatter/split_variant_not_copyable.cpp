// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a variant with arrays is split by rows and rebuilt for each shard
#include <memory>
#include <variant>

#include <fanout/fanout.hpp>

#ifdef FANOUT_CONTROL
using Second = std::shared_ptr<int>;
#else
using Second = std::unique_ptr<int>;
#endif

int main() {
  const fanout::ParallelModel model{[](const auto& variant) { return variant.index(); }};
  const std::variant<fanout::Tensor<float, 1>, Second> variant;
  (void)model(variant);
}
