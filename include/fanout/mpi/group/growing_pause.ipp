// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/group/growing_pause.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace fanout { inline namespace v0 { namespace detail {

void GrowingPause::operator()(Clock::Time end) const {
  const Clock::Time now = Clock::now();
  const Clock::Time waited = now - begin_;
  const Clock::Time sleep = std::min({waited / 8, longest, end - now});
  if (waited < yields || sleep <= 0) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::nanoseconds(sleep));
  }
}

}}}  // namespace fanout::v0::detail
