// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace fanout::inline v0 {

// std::atomic::wait keeps its list of waiters in a static of libstdc++'s headers, of which two shared libraries may
// have two copies: a wake in one would then not reach a waiter in the other. The kernel's futex has no such list.

/// Sleeps while `word` holds `expected`. May return early; callers look again.
inline void park(const std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
#if defined(__linux__)
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  word.wait(expected);
#endif
}

/// Wakes everyone who sleeps on `word`. Touches no memory, so the word may be gone already.
inline void unpark_all(const std::atomic<std::uint32_t>& word) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#else
  const_cast<std::atomic<std::uint32_t>&>(word).notify_all();
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
