// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A kernel faults on one rank while the others wait for it in a collective of NCCL. The call must throw in time. NCCL
// itself waits forever. The one of the stand-in gives up after FANOUT_STAND_IN_PATIENCE_MS, which by default is later.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <thread>

#include <unistd.h>

#include <fanout/context/collectives.hpp>
#include <fanout/cuda/nccl.hpp>

#include "benchmarks/cuda/kernels.hpp"
#include "benchmarks/cuda/programs/line.hpp"

namespace benchmarks::nccl_fault {

struct Faults {
  int forward(fanout::Context auto& ctx, bool faults) const {
    constexpr std::size_t size = 1U << 20U;
    auto own = fanout::empty<float>(ctx, size);
    fanout::launch(ctx, size, Fill{own.data(), 1});
    if (faults && ctx.rank() == 1) fanout::launch(ctx, 1, Fault{ctx.device().index()});
    ctx.communicator().all_reduce(own);
    return 1;
  }
};

/// Ends the process with 1 and the program's line if it lives longer than that.
class Limit {
 public:
  explicit Limit(std::chrono::seconds seconds)
      : thread_([this, seconds] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, seconds, [this] { return over_; })) return;
          std::printf("nccl_fault wrong the call did not end within %d s\n", static_cast<int>(seconds.count()));
          std::fflush(stdout);
          ::_exit(1);
        }) {}
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;
  ~Limit() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

inline void measure(const Settings&, Line& line) {
  const fanout::ParallelModel model{Faults{}, fanout::cuda_devices(),
                                    fanout::Options{.collectives = fanout::nccl_collectives()}};
  for (const int one : fanout::to_host(model(fanout::on_all(), false))) line.need(one == 1);
  const Limit limit(std::chrono::seconds(15));
  bool thrown = false;
  try {
    model(fanout::on_all(), true);
  } catch (const fanout::Error& error) {
    thrown = true;
    std::fprintf(stderr, "%s\n", error.what());
  }
  line.need(thrown);
  std::fprintf(stderr, "The error above is expected.\n");
  const int status = line.print(false);
  std::fflush(stdout);
  ::_exit(status);  // NCCL's threads may still wait for the rank that faulted
}

inline constexpr Program program{"nccl_fault", 2, 0, &measure};

}  // namespace benchmarks::nccl_fault
