// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a model with slices cannot be trained as a stage of a pipeline
#include <utility>

#include <fanout/stages.hpp>

using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;

struct Model {
#ifdef FANOUT_CONTROL
  Column weight;
#else
  fanout::Slice<Column, 0> weight;
#endif
  auto forward(Rows x) const { return fanout::saved(Column(x), 0); }
  auto backward(const auto&, const auto& dy) const { return std::pair{Column(dy), fanout::psum(dy[0])}; }
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
  const Column x(3);
  const fanout::Pipeline net{fanout::stage(Model{x}, fanout::host_devices(1)),
                             fanout::stage(Model{x}, fanout::host_devices(1))};
  (void)net.train(x, x, loss);
}
