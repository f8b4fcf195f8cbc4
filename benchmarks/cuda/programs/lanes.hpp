// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Four devices on one GPU: their kernels run side by side, also if `forward` allocates memory.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::lanes {

inline constexpr int count = 4;

struct Kernels {
  int forward(fanout::Context auto& ctx, std::uint64_t nanoseconds, bool allocates) const {
    constexpr std::size_t size = 1U << 18U;
    for (int n = 0; n < count; ++n) {
      if (allocates) {
        auto temporary = fanout::empty<float>(ctx, size);
        fanout::launch(ctx, 1, Fill{temporary.data(), 1});
        fanout::launch(ctx, 1, Spin{nanoseconds});
      } else {
        fanout::launch(ctx, 1, Spin{nanoseconds});
      }
    }
    return 1;
  }
};

inline void measure(const Settings& settings, Line& line) {
  const auto devices = fanout::cuda_devices({.indices = {0}, .count = count, .oversubscribe = true});
  const fanout::ParallelModel model{Kernels{}, devices};
  const auto nanoseconds = static_cast<std::uint64_t>(settings.milliseconds * 1e6);
  const double one_lane = count * settings.milliseconds / 1e3;
  const auto seconds = [&](bool allocates) {
    return seconds_of([&] {
      const auto ones = model(fanout::on_all(), nanoseconds, allocates);
      for (const int one : ones) line.need(one == 1);
    });
  };

  std::vector<cudaStream_t> streams(count);
  for (cudaStream_t& stream : streams) check(cudaStreamCreate(&stream), "cudaStreamCreate");
  const auto by_hand = [&] {
    return seconds_of([&] {
      for (int n = 0; n < count; ++n) {
        for (cudaStream_t stream : streams) busy(stream, settings.milliseconds);
      }
      for (cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    });
  };
  line.ratio("side_by_side", median_of(settings.rounds, [&] { return seconds(false); }) / one_lane, 0.9, 1.3);
  line.tell("side_by_side_by_hand", median_of(settings.rounds, by_hand) / one_lane);
  line.ratio("allocations",
             median_ratio(
                 settings.rounds, [&] { return seconds(true); }, [&] { return seconds(false); }),
             0.8, 1.2);
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

inline constexpr Program program{"lanes", 1, 5, &measure};

}  // namespace benchmarks::lanes
