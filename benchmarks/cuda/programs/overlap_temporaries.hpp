// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// Batches are copied in one stream and computed in another one, both with memory of one pool. If the pool may give a
// stream memory that another one still uses (cudaMemPoolReuseAllowInternalDependencies), a copy waits for a kernel.
// fanout's pool forbids that. Here pools made by hand allow it and forbid it, beside a model.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::overlap_temporaries {

inline constexpr int batches = 8;

/// Two streams and a pool.
class Pooled {
 public:
  explicit Pooled(bool reuses_what_is_in_use) {
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    std::uint64_t keep = UINT64_MAX;
    int reuse = reuses_what_is_in_use ? 1 : 0;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &reuse), "cudaMemPoolSetAttribute");
    check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaStreamCreateWithFlags(&compute_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  Pooled(const Pooled&) = delete;
  Pooled& operator=(const Pooled&) = delete;
  ~Pooled() {
    static_cast<void>(cudaEventDestroy(copied_));
    static_cast<void>(cudaStreamDestroy(copies_));
    static_cast<void>(cudaStreamDestroy(compute_));
    static_cast<void>(cudaMemPoolDestroy(pool_));
  }

  /// Each batch is copied, and a kernel with a temporary array uses it.
  double run(const void* from, std::size_t bytes, double milliseconds) {
    return seconds_of([&] {
      for (int n = 0; n < batches; ++n) {
        void* const batch = allocate(bytes, copies_);
        check(cudaMemcpyAsync(batch, from, bytes, cudaMemcpyHostToDevice, copies_), "cudaMemcpyAsync");
        check(cudaEventRecord(copied_, copies_), "cudaEventRecord");
        check(cudaStreamWaitEvent(compute_, copied_, 0), "cudaStreamWaitEvent");
        void* const temporary = allocate(bytes, compute_);
        if (milliseconds > 0) busy(compute_, milliseconds);
        check(cudaFreeAsync(temporary, compute_), "cudaFreeAsync");
        check(cudaFreeAsync(batch, compute_), "cudaFreeAsync");
      }
      check(cudaStreamSynchronize(compute_), "cudaStreamSynchronize");
    });
  }

 private:
  void* allocate(std::size_t bytes, cudaStream_t stream) {
    void* data = nullptr;
    check(cudaMallocFromPoolAsync(&data, bytes, pool_, stream), "cudaMallocFromPoolAsync");
    return data;
  }

  cudaMemPool_t pool_ = nullptr;
  cudaStream_t copies_ = nullptr;
  cudaStream_t compute_ = nullptr;
  cudaEvent_t copied_ = nullptr;
};

struct WithTemporary {
  int forward(fanout::Context auto& ctx, fanout::View<const float, 2> x, std::uint64_t nanoseconds) const {
    const auto temporary = fanout::empty<float>(ctx, x.size());
    fanout::launch(ctx, 1, Spin{nanoseconds});
    return temporary.size() == x.size() ? 1 : 0;
  }
};

inline void measure(const Settings& settings, Line& line) {
  using Rows = fanout::Tensor<float, 2>;
  const std::size_t bytes = settings.megabytes << 20U;
  const Rows x = fanout::cuda::pinned<float>(bytes / 1024, 256);
  double kernel = settings.milliseconds / 1e3;
  double best = 0;
  std::vector<double> ratios[2];
  {
    Pooled allowed(true), forbidden(false);
    const auto copy = [&] { return forbidden.run(x.data(), bytes, 0) / batches; };
    const double seconds = median_of(settings.rounds, copy);
    if (kernel < seconds) kernel = seconds;  // as long as a copy, so that all copies but one could be hidden
    best = batches * kernel + seconds;
    for (int round = 0; round <= settings.rounds; ++round) {
      ratios[0].push_back(forbidden.run(x.data(), bytes, 1e3 * kernel) / best);
      ratios[1].push_back(allowed.run(x.data(), bytes, 1e3 * kernel) / best);
    }
    for (auto& each : ratios) each.erase(each.begin());  // the warm-up
    line.ratio("forbidden", quantile(ratios[0], 0.5), 0.7, 1.4);
    line.tell("allowed", quantile(ratios[1], 0.5));
  }
  const fanout::ParallelModel model{WithTemporary{}, fanout::cuda_devices(1)};
  const auto nanoseconds = static_cast<std::uint64_t>(1e9 * kernel);
  const double ours = median_of(settings.rounds, [&] {
    return seconds_of([&] {
      std::vector<decltype(model.async(x, nanoseconds))> pending;
      for (int n = 0; n < batches; ++n) pending.push_back(model.async(x, nanoseconds));
      for (auto& one : pending) line.need(one.get()[0] == 1);
    });
  });
  line.ratio("fanout", ours / best, 0.7, 1.4);
}

inline constexpr Program program{"overlap_temporaries", 1, 0, &measure};

}  // namespace benchmarks::overlap_temporaries
