// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fanout/fwd.hpp>

struct Model;

// Defined here with types that are only declared, and called where they are complete: it links if they are the same.
const void* only_names(const fanout::ParallelModel<Model, fanout::DeviceSet<fanout::HostDevice>>& model,
                       const fanout::ParallelModel<Model>* /*on_all*/, const fanout::Tensor<float, 1>* /*tensor*/,
                       const fanout::View<const float, 1>* /*view*/, const fanout::Plan* /*plan*/,
                       const fanout::Indices<fanout::HostDevice, 0, 2>* /*source*/, const fanout::Error* /*error*/) {
  return &model;
}
