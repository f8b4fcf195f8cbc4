// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A collective of NCCL is the first thing in the process that touches the memory of other GPUs. Run it with and without
// NCCL_P2P_DIRECT_DISABLE=1. Later calls are compared with ncclAllReduce by hand.

#include <cstddef>
#include <vector>

#include <fanout/context/collectives.hpp>
#include <fanout/cuda/nccl.hpp>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::nccl_first {

struct Adds {
  auto forward(fanout::Context auto& ctx, std::size_t size) const {
    auto own = fanout::empty<float>(ctx, size);
    fanout::launch(ctx, size, Fill{own.data(), static_cast<float>(ctx.rank() + 1)});
    ctx.communicator().all_reduce(own);
    return fanout::sharded(own);
  }
};

/// Communicators and arrays of one's own.
class ByHand {
 public:
  ByHand(int gpus, std::size_t size)
      : size_(size), ranks_(static_cast<std::size_t>(gpus)), communicators_(ranks_.size()) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    fanout::cuda::detail::check_nccl(ncclCommInitAll(communicators_.data(), gpus, nullptr), "ncclCommInitAll");
    each([&](Rank& rank) {
      check(cudaStreamCreate(&rank.stream), "cudaStreamCreate");
      check(cudaMalloc(&rank.data, size * sizeof(float)), "cudaMalloc");
    });
  }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;
  ~ByHand() {
    for (ncclComm_t communicator : communicators_) static_cast<void>(ncclCommDestroy(communicator));
    each([](Rank& rank) {
      static_cast<void>(cudaStreamDestroy(rank.stream));
      static_cast<void>(cudaFree(rank.data));
    });
  }

  void all_reduce() {
    std::size_t number = 0;
    each([&](Rank& rank) { start(rank.stream, size_, Fill{static_cast<float*>(rank.data), 1}); });
    fanout::cuda::detail::check_nccl(ncclGroupStart(), "ncclGroupStart");
    each([&](Rank& rank) {
      fanout::cuda::detail::check_nccl(
          ncclAllReduce(rank.data, rank.data, size_, ncclFloat32, ncclSum, communicators_[number++], rank.stream),
          "ncclAllReduce");
    });
    fanout::cuda::detail::check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    each([](Rank& rank) { check(cudaStreamSynchronize(rank.stream), "cudaStreamSynchronize"); });
  }

 private:
  struct Rank {
    cudaStream_t stream = nullptr;
    void* data = nullptr;
  };
  template <class F>
  void each(const F& f) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      static_cast<void>(cudaSetDevice(static_cast<int>(i)));
      f(ranks_[i]);
    }
    static_cast<void>(cudaSetDevice(before_));
  }

  std::size_t size_;
  std::vector<Rank> ranks_;
  std::vector<ncclComm_t> communicators_;
  int before_ = 0;
};

inline void measure(const Settings& settings, Line& line) {
  const int gpus = fanout::cuda::device_count();
  const std::size_t size = settings.megabytes << 18U;
  const fanout::ParallelModel model{Adds{}, fanout::cuda_devices(),
                                    fanout::Options{.collectives = fanout::nccl_collectives()}};
  const auto sum = static_cast<float>(gpus * (gpus + 1) / 2);
  const auto first = model(fanout::on_all(), size);
  for (const auto& own : first) line.right(others_than(own, sum), own.size());
  ByHand by_hand(gpus, size);
  line.ratio("later_calls",
             median_ratio(
                 settings.rounds, [&] { return seconds_of([&] { model(fanout::on_all(), size); }); },
                 [&] { return seconds_of([&] { by_hand.all_reduce(); }); }),
             0.5, 1.3);
}

inline constexpr Program program{"nccl_first", 2, 0, &measure};

}  // namespace benchmarks::nccl_first
