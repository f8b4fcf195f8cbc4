// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/sync/clock.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The time in which a pipeline has had calls. Calls at the same time count once.
class TimeInCalls {
 public:
  TimeInCalls() noexcept = default;
  TimeInCalls(const TimeInCalls&) = delete;
  TimeInCalls& operator=(const TimeInCalls&) = delete;

  void begin(Clock::Time now) noexcept {
    const ForkSafeLock counting(mutex_);
    if (running_++ == 0) since_ = now;
  }
  void end(Clock::Time now) noexcept {
    const ForkSafeLock counting(mutex_);
    if (--running_ == 0) total_ += now - since_;
  }

  double seconds() const noexcept {
    const ForkSafeLock counting(mutex_);
    return 1e-9 * static_cast<double>(total_);
  }

 private:
  mutable ForkSafeMutex mutex_;
  std::size_t running_ = 0;
  Clock::Time since_ = 0;  // the first of the running calls has begun
  Clock::Time total_ = 0;
};

}}}  // namespace fanout::v0::detail
