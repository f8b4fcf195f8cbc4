// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: models that are applied together return one type
#include <tuple>

#include <fanout/fanout.hpp>

template <class T>
struct Zeros {
  auto forward(fanout::View<const float, 1> x) const { return fanout::Tensor<T, 1>(x.size()); }
};

#ifdef FANOUT_CONTROL
using Other = float;
#else
using Other = double;
#endif

int main() {
  const auto devices = fanout::host_devices(2);
  const auto inputs = fanout::scatter(devices, fanout::Tensor<float, 1>(4));
  (void)fanout::apply(std::tuple{Zeros<float>{}, Zeros<Other>{}}, devices, inputs);
}
