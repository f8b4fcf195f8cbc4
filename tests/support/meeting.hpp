// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <thread>

namespace fanout_test {

/// Waits until all of `n` have come here.
class Meeting {
 public:
  explicit Meeting(int n) : missing_(n) {}
  void come() {
    --missing_;
    while (missing_ > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

}  // namespace fanout_test
