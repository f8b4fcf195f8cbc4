// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: fanout: a stage takes a key that no stage before it makes
#include <fanout/stages.hpp>

using fanout::host_devices;
using namespace fanout::literals;
using Rows = fanout::View<const float, 1>;

int main() {
  const auto make = [](Rows x) { return fanout::dict("x"_k = fanout::Tensor<float, 1>(x)); };
  const auto take = [](Rows x) { return fanout::Tensor<float, 1>(x); };
#ifdef FANOUT_CONTROL
  constexpr auto key = "x"_k;
#else
  constexpr auto key = "y"_k;
#endif
  const fanout::Pipeline net{fanout::stage(make, host_devices(1)), fanout::stage(take, host_devices(1)).takes(key)};
  (void)net(fanout::Tensor<float, 1>(3));
}
