// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a stage that takes values under keys cannot be trained
#include <utility>

#include <fanout/stages.hpp>

using namespace fanout::literals;
using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;

struct Model {
  auto forward(Rows x) const { return fanout::saved(Column(x), 0); }
  auto backward(const auto&, const auto& dy) const { return std::pair{Column(dy), fanout::psum(dy[0])}; }
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
#ifdef FANOUT_CONTROL
  auto second = fanout::stage(Model{}, fanout::host_devices(1));
#else
  auto second = fanout::stage(Model{}, fanout::host_devices(1)).takes("x"_k);
#endif
  const fanout::Pipeline net{fanout::stage(Model{}, fanout::host_devices(1)), std::move(second)};
  const Column x(3);
  (void)net.train(x, x, loss);
}
