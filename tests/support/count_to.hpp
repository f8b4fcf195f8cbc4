// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <vector>

#include <fanout/array/tensor.hpp>

namespace fanout_test {

/// 0, 1, ... n - 1: so that each row says where it stood.
inline fanout::Tensor<int, 1> count_to(std::size_t n) {
  fanout::Tensor<int, 1> tensor(n);
  for (std::size_t i = 0; i < n; ++i) tensor[i] = static_cast<int>(i);
  return tensor;
}

inline std::vector<int> values(const fanout::Tensor<int, 1>& tensor) { return {tensor.begin(), tensor.end()}; }

}  // namespace fanout_test
