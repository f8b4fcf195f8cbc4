// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: stages that take a value under one key give back dx of different types for it
#include <utility>

#include <fanout/stages.hpp>

using namespace fanout::literals;
using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;
#ifdef FANOUT_CONTROL
using Other = Column;
#else
using Other = fanout::Tensor<double, 1>;
#endif

struct Make {
  auto forward(Rows x) const { return fanout::saved(fanout::dict("a"_k = Column(x)), 0); }
  auto backward(int, const auto& dy) const { return std::pair{0, fanout::psum(dy["a"_k](0))}; }
};
struct Middle {
  auto forward(Rows a) const { return fanout::saved(fanout::dict("c"_k = Column(a)), 0); }
  auto backward(int, const auto&) const { return std::pair{Other(1), fanout::psum(0)}; }
};
struct Last {
  auto forward(Rows c, Rows) const { return fanout::saved(Column(c), 0); }
  auto backward(int, const auto& dy) const {
    return std::pair{fanout::dict("c"_k = Column(dy), "a"_k = Column(dy)), fanout::psum(0)};
  }
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
  const fanout::Pipeline net{fanout::stage(Make{}, fanout::host_devices(1)),
                             fanout::stage(Middle{}, fanout::host_devices(1)).takes("a"_k),
                             fanout::stage(Last{}, fanout::host_devices(1)).takes("c"_k, "a"_k)};
  const Column x(3);
  (void)net.train(x, x, loss);
}
