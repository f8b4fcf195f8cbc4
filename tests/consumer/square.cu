// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program with a kernel, compiled by nvcc: the same model on GPUs and on the host's cores.
// [program]
#include <cstddef>
#include <cstdio>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/launch.cuh>

struct Square {
  fanout::View<double, 1> y;
  fanout::View<const double, 1> x;
  FANOUT_HOST_DEVICE void operator()(std::size_t i) const { y[i] = x[i] * x[i]; }
};

struct Model {
  auto forward(fanout::Context auto& ctx, fanout::View<const double, 1> x) const {
    auto y = fanout::output<double>(ctx);
    fanout::launch(ctx, x.size(), Square{y, x});  // a loop on cores, a kernel on GPUs
    return y;
  }
};

int main() {
  // GPUs if there are any, else cores.
  const fanout::ParallelModel model{Model{}, fanout::FirstAvailable<fanout::CudaDevice, fanout::HostDevice>{}};
  const auto y = fanout::to_host(model(std::vector{1.0, 2.0, 3.0, 4.0, 5.0}));
  for (const double value : y) std::printf("%g ", value);  // 1 4 9 16 25
  std::printf("\n");
  return y.size() == 5 && y[4] == 25 ? 0 : 1;
}
// [/program]
