// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <time.h>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout::inline v0 {

// std::atomic::wait keeps its list of waiters in a static of libstdc++'s headers, of which two shared libraries may
// have two copies: a wake in one would then not reach a waiter in the other. Linux's futex has no such list; where
// there is no futex, who sleeps looks again every 50 us.

namespace detail {

/// Where the kernel, which knows words of 32 bits only, is to look at a longer one.
inline const void* lower_half(const Atomic<std::uint64_t>& word) noexcept {
  constexpr std::size_t offset = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 4;
  return reinterpret_cast<const char*>(&word) + offset;
}

}  // namespace detail

/// Sleeps while `word` holds `expected`. May return early; callers look again.
inline void park(const Atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
#if defined(__linux__)
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  const timespec while_somebody_may_write{.tv_sec = 0, .tv_nsec = 50'000};
  if (word.load() == expected) ::nanosleep(&while_somebody_may_write, nullptr);
#endif
}

/// The same, and returns when the clock shows `until`.
inline void park_until(const Atomic<std::uint32_t>& word, std::uint32_t expected, Clock::Time until) noexcept {
#if defined(__linux__)
  timespec time{};
  time.tv_sec = static_cast<decltype(time.tv_sec)>(until / 1'000'000'000);
  time.tv_nsec = static_cast<decltype(time.tv_nsec)>(until % 1'000'000'000);
  // The one of the two waits that takes a point in time; it is woken as the other is.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, &time, nullptr, FUTEX_BITSET_MATCH_ANY);
#else
  if (Clock::now() < until) park(word, expected);
#endif
}

/// The same on the lower half of a word.
inline void park(const Atomic<std::uint64_t>& word, std::uint64_t expected) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, detail::lower_half(word), FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(expected), nullptr,
            nullptr, 0);
#else
  const timespec while_somebody_may_write{.tv_sec = 0, .tv_nsec = 50'000};
  if (word.load() == expected) ::nanosleep(&while_somebody_may_write, nullptr);
#endif
}

/// The same, and returns when the clock shows `until`.
inline void park_until(const Atomic<std::uint64_t>& word, std::uint64_t expected, Clock::Time until) noexcept {
#if defined(__linux__)
  timespec time{};
  time.tv_sec = static_cast<decltype(time.tv_sec)>(until / 1'000'000'000);
  time.tv_nsec = static_cast<decltype(time.tv_nsec)>(until % 1'000'000'000);
  ::syscall(SYS_futex, detail::lower_half(word), FUTEX_WAIT_BITSET_PRIVATE, static_cast<std::uint32_t>(expected), &time,
            nullptr, FUTEX_BITSET_MATCH_ANY);
#else
  if (Clock::now() < until) park(word, expected);
#endif
}

/// Wakes everyone who sleeps on the lower half of `word`. Touches no memory.
inline void unpark_all([[maybe_unused]] const Atomic<std::uint64_t>& word) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, detail::lower_half(word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#endif
}

/// Wakes everyone who sleeps on `word`. Touches no memory, so the word may be gone already.
inline void unpark_all([[maybe_unused]] const Atomic<std::uint32_t>& word) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#endif
}

/// One turn of a spinning loop: tells the core that nothing happens here.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace fanout::inline v0
