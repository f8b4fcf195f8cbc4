// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a member of a struct cannot hold its gathered value
// expect: CannotHold<float,
// expect: Element<1>
// expect: EachValue
// expect: Key<'m', 'e', 'a', 'n'>
#include <map>
#include <string>

#include <fanout/fanout.hpp>
using namespace fanout::literals;

struct Statistics {
  float mean, variance;
};

struct Model {
  auto forward(fanout::View<const float, 1> x) const {
#ifdef FANOUT_CONTROL
    std::map<std::string, float> map{{"mean", x[0]}};
#else
    std::map<std::string, Statistics> map{{"both", {x[0], x[1]}}};
#endif
    return std::tuple{x, fanout::dict("extra"_k = map)};
  }
};

int main() {
  const fanout::ParallelModel model{Model{}};
  const auto [rows, extras] = model(fanout::Tensor<float, 1>(4));  // no second error here
  (void)rows;
  (void)extras["extra"_k];
}
