// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: no stage takes what a stage that is trained returns, so nothing comes back to it
#include <utility>

#include <fanout/stages.hpp>

using namespace fanout::literals;
using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;

struct Fork {
  auto forward(Rows x) const { return fanout::saved(fanout::dict("a"_k = Column(x), "b"_k = Column(x)), 0); }
  auto backward(int, const auto&) const { return std::pair{0, fanout::psum(0)}; }
};
struct Middle {
  auto forward(Rows a) const { return fanout::saved(fanout::dict("c"_k = Column(a)), 0); }
  auto backward(int, const auto&) const { return std::pair{Column(1), fanout::psum(0)}; }
};
struct Last {
  auto forward(Rows x) const { return fanout::saved(Column(x), 0); }
  auto backward(int, const auto& dy) const { return std::pair{Column(dy), fanout::psum(0)}; }
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
#ifdef FANOUT_CONTROL
  auto last = fanout::stage(Last{}, fanout::host_devices(1)).takes("c"_k);
#else
  auto last = fanout::stage(Last{}, fanout::host_devices(1)).takes("b"_k);
#endif
  const fanout::Pipeline net{fanout::stage(Fork{}, fanout::host_devices(1)),
                             fanout::stage(Middle{}, fanout::host_devices(1)).takes("a"_k), std::move(last)};
  const Column x(3);
  (void)net.train(x, x, loss);
}
