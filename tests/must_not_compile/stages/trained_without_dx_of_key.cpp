// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: the backward of a stage that takes values under keys returns as dx a dict with these keys
#include <utility>

#include <fanout/stages.hpp>

using namespace fanout::literals;
using Rows = fanout::View<const float, 1>;
using Column = fanout::Tensor<float, 1>;

struct Fork {
  auto forward(Rows x) const { return fanout::saved(fanout::dict("a"_k = Column(x), "b"_k = Column(x)), 0); }
  auto backward(int, const auto&) const { return std::pair{0, fanout::psum(0)}; }
};
struct Join {
  auto forward(Rows a, Rows) const { return fanout::saved(Column(a), 0); }
  auto backward(int, const auto& dy) const {
#ifdef FANOUT_CONTROL
    return std::pair{fanout::dict("a"_k = Column(dy), "b"_k = Column(dy)), fanout::psum(0)};
#else
    return std::pair{fanout::dict("a"_k = Column(dy)), fanout::psum(0)};
#endif
  }
};

int main() {
  const auto loss = [](Rows y, Rows) { return std::pair{fanout::psum(y[0]), Column(y)}; };
  const fanout::Pipeline net{fanout::stage(Fork{}, fanout::host_devices(1)),
                             fanout::stage(Join{}, fanout::host_devices(1)).takes("a"_k, "b"_k)};
  const Column x(3);
  (void)net.train(x, x, loss);
}
