// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a stage that is trained needs `backward(state, dy)`, with a context first if it wants one
#include <utility>

#include <fanout/stages.hpp>

using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;

struct Model {
  auto forward(Rows x) const { return fanout::saved(Column(x), 0); }
#ifdef FANOUT_CONTROL
  auto backward(const auto&, const auto& dy) const { return std::pair{Column(dy), fanout::psum(dy[0])}; }
#endif
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
  const fanout::Pipeline net{fanout::stage(Model{}, fanout::host_devices(1)),
                             fanout::stage(Model{}, fanout::host_devices(1))};
  const Column x(3);
  (void)net.train(x, x, loss);
}
