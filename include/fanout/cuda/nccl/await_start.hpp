// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nccl.h>
#include <sched.h>
#include <time.h>

#include <fanout/cuda/nccl/nccl_error.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Pauses between two looks at something: yields at first, and then sleeps an eighth of the time so far, at most 1 ms.
class PausesOfPoll {
 public:
  void pause() noexcept {
    using Clock = fanout::detail::Clock;
    constexpr Clock::Time yields_for = 50'000;
    constexpr Clock::Time most = 1'000'000;
    const Clock::Time waited = Clock::now() - begin_;
    if (waited < yields_for) {
      ::sched_yield();
      return;
    }
    const timespec time{.tv_sec = 0, .tv_nsec = waited / 8 < most ? waited / 8 : most};
    ::nanosleep(&time, nullptr);
  }

 private:
  fanout::detail::Clock::Time begin_ = fanout::detail::Clock::now();
};

/// Waits until NCCL has started the communicator's last call. Only a communicator that does not block may take a while.
inline void await_start(ncclComm_t communicator, const char* call) {
  for (PausesOfPoll poll;; poll.pause()) {
    ncclResult_t state = ncclSuccess;
    check_nccl(::ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError", communicator);
    if (state != ncclInProgress) return check_nccl(state, call, communicator);
  }
}

}}}  // namespace fanout::v0::cuda::detail
