// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Waits between two looks at something, since ranks may have to share a core. A wait that has been short yields, a
/// longer one sleeps for an eighth of the time so far, and for 1 ms at most. So it ends late by an eighth, or 1 ms.
class GrowingPause {
 public:
  /// Does not sleep beyond `end`.
  void operator()(Clock::Time end) const {
    const Clock::Time now = Clock::now();
    const Clock::Time waited = now - begin_;
    const Clock::Time sleep = std::min({waited / 8, longest, end - now});
    if (waited < yields || sleep <= 0) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(sleep));
    }
  }

 private:
  static constexpr Clock::Time yields = 200'000;     // ns; less than a sleep of a few of these would take
  static constexpr Clock::Time longest = 1'000'000;  // ns

  Clock::Time begin_ = Clock::now();
};

}}}  // namespace fanout::v0::detail
