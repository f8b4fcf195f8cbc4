// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a struct with arrays is split by rows, but this one's members cannot be found
// expect: scatter_traits, or pass
#include <fanout/fanout.hpp>
using namespace fanout::literals;

struct Settings {
  float rate;
};

struct Batch : Settings {
  fanout::View<const float, 1> x;

#ifdef FANOUT_CONTROL
  friend constexpr auto fields(const Batch*) { return fanout::dict("rate"_k = &Batch::rate, "x"_k = &Batch::x); }
#endif
};

int main() {
  const fanout::ParallelModel model{[](const Batch& batch) { return batch.rate; }};
  const fanout::Tensor<float, 1> x(4);
  (void)model(Batch{{0.5F}, x});
}
