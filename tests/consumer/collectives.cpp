// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A user's program whose GPUs pass arrays to each other by NCCL inside of a call, compiled by g++.
#include <cstddef>
#include <cstdio>

#include <fanout/context/collectives.hpp>
#include <fanout/cuda.hpp>
#include <fanout/cuda/nccl.hpp>

// [collectives]
struct Sum {
  auto forward(fanout::Context auto& ctx, fanout::View<const float, 1> x) const {
    auto sum = fanout::output<float>(ctx);
    fanout::cuda::check(
        cudaMemcpyAsync(sum.data(), x.data(), x.size() * sizeof(float), cudaMemcpyDefault, ctx.stream().get()),
        "cudaMemcpyAsync");
    ctx.communicator().all_reduce(sum);  // in order with the stream; as many rows on each device
    return sum;
  }
};
// [/collectives]

int main() {
  if (!fanout::cuda::is_available()) {
    std::printf("no GPU\n");
    return 0;
  }
  const auto devices = fanout::cuda_devices();
  // [nccl]
  const fanout::ParallelModel model{Sum{}, devices, fanout::Options{.collectives = fanout::nccl_collectives()}};
  // [/nccl]
  fanout::Tensor<float, 1> ones(2 * devices.size());
  for (float& x : ones) x = 1;
  bool right = true;
  const auto sums = fanout::to_host(model(ones));
  for (const float sum : sums) right = right && sum == static_cast<float>(devices.size());
  std::printf("%s\n", right ? "summed" : "wrong");
  return right ? 0 : 1;
}
