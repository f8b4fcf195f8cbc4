// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "model.hpp"

SeenBySecond seen_by_second() {
  return {FANOUT_VERSION, &fanout::backend::registry(), &fanout::host_devices(2)[1].worker()};
}

float sum_in_second(const fanout::Tensor<float, 1>& x) {
  const Parallel model{Model{}, fanout::host_devices(2)};
  float sum = 0;
  for (const float value : model(x).first) sum += value;
  return sum;
}

std::string update_in_second(Parallel& model) {
  try {
    model.update([](Model& original) { original.inside = [] {}; });
    return {};
  } catch (const fanout::Error& error) {
    return error.what();
  }
}
