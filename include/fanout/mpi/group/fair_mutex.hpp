// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <mutex>

namespace fanout { inline namespace v0 { namespace detail {

/// A mutex that a thread which locks it again and again does not keep from others. With std::mutex, a thread that waits
/// may be woken too late each time.
class FairMutex {
 public:
  FairMutex() = default;
  FairMutex(const FairMutex&) = delete;
  FairMutex& operator=(const FairMutex&) = delete;

  void lock() {
    const std::lock_guard<std::mutex> turn(next_);  // held by the thread that has it next, so nobody else tries
    held_.lock();
  }
  bool try_lock() {
    const std::unique_lock<std::mutex> turn(next_, std::try_to_lock);
    return turn && held_.try_lock();
  }
  void unlock() { held_.unlock(); }

 private:
  std::mutex next_;
  std::mutex held_;
};

}}}  // namespace fanout::v0::detail
