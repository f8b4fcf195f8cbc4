// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The system call that puts threads to sleep on a word of 32 bits.
struct LinuxFutex {
  static constexpr bool compares = true;  // the kernel compares the word before the thread sleeps

  static void wait(const void* word, std::uint32_t expected) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
  }

  static void wait_until(const void* word, std::uint32_t expected, Clock::Time until) noexcept {
    timespec time{};
    time.tv_sec = until / 1'000'000'000;
    time.tv_nsec = until % 1'000'000'000;
    // FUTEX_WAIT_BITSET takes a point in time, FUTEX_WAIT a duration. FUTEX_WAKE wakes both.
    ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, &time, nullptr, FUTEX_BITSET_MATCH_ANY);
  }

  static void wake_all(const void* word) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
  }
};

}}}  // namespace fanout::v0::detail
