// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/base/requirements.hpp>

#include <chrono>
#include <thread>

namespace fanout { inline namespace v0 { namespace detail {

/// How a thread waits between two looks at open messages: first it yields, since ranks may share cores, and later it
/// sleeps.
class Backoff {
 public:
  void operator()() {
    if (looks_ < yields) {
      ++looks_;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  static constexpr int yields = 2000;

  int looks_ = 0;
};

}}}  // namespace fanout::v0::detail
