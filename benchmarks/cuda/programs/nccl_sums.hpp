// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Arrays that the shards return under psum and pmean, added by NCCL, beside the same model whose arrays the host adds.

#include <cstddef>
#include <tuple>

#include <fanout/context/launch.hpp>
#include <fanout/cuda/nccl.hpp>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::nccl_sums {

struct Adds {
  auto forward(fanout::Context auto& ctx, std::size_t size) const {
    const auto own = fanout::empty<float>(ctx, size);
    fanout::launch(ctx, size, Fill{own.data(), static_cast<float>(ctx.rank() + 1)});
    return std::tuple{fanout::psum(own), fanout::pmean(own)};
  }
};

inline void measure(const Settings& settings, Line& line) {
  const auto gpus = static_cast<float>(fanout::cuda::device_count());
  const std::size_t size = settings.megabytes << 18U;
  const fanout::ParallelModel by_nccl{Adds{}, fanout::cuda_devices(),
                                      fanout::Options{.collectives = fanout::nccl_collectives()}};
  const fanout::ParallelModel by_host{Adds{}, fanout::cuda_devices()};
  const auto [sum, mean] = by_nccl(fanout::on_all(), size);
  line.right(others_than(sum, gpus * (gpus + 1) / 2), sum.size());
  line.right(others_than(mean, (gpus + 1) / 2), mean.size());
  line.ratio("by_host",
             median_ratio(
                 settings.rounds, [&] { return seconds_of([&] { by_nccl(fanout::on_all(), size); }); },
                 [&] { return seconds_of([&] { by_host(fanout::on_all(), size); }); }),
             0.0, 0.7);
}

inline constexpr Program program{"nccl_sums", 2, 0, &measure};

}  // namespace benchmarks::nccl_sums
