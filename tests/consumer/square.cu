// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program with a kernel, compiled by nvcc: the same model on the host's cores and on GPUs.
#include <cstddef>
#include <cstdio>
#include <vector>

#include <fanout/cuda.hpp>
#include <fanout/cuda/launch.cuh>

// [model]
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
// [/model]

bool squares(const auto& model) {
  const auto y = fanout::to_host(model(std::vector{1.0, 2.0, 3.0, 4.0, 5.0}));
  for (std::size_t i = 0; i < y.size(); ++i) std::printf("%g ", y[i]);
  std::printf("\n");
  return y.size() == 5 && y[4] == 25;
}

int main() {
  bool right = squares(fanout::ParallelModel{Model{}, fanout::host_devices(2)});
  if (fanout::cuda::is_available()) {
    right = squares(fanout::ParallelModel{Model{}, fanout::AllVisible<fanout::CudaDevice>{}}) && right;
  }
  return right ? 0 : 1;
}
