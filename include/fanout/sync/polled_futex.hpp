// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <time.h>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Where the system has no futex: a sleeping thread looks at the word every 50 us, so nobody needs to wake it.
struct PolledFutex {
  static constexpr bool compares = false;

  static void wait(const void*, std::uint32_t) noexcept {
    const timespec while_somebody_may_write{.tv_sec = 0, .tv_nsec = 50'000};
    ::nanosleep(&while_somebody_may_write, nullptr);
  }

  static void wait_until(const void* word, std::uint32_t expected, Clock::Time until) noexcept {
    if (Clock::now() < until) wait(word, expected);
  }

  static void wake_all(const void*) noexcept {}
};

}}}  // namespace fanout::v0::detail
