// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <time.h>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// std::atomic::wait keeps its waiters in a static of libstdc++'s headers. Two shared libraries may have two copies of
// it, so a wake in one would not reach a waiter in the other. Linux's futex has no such list. Without a futex, a
// sleeping thread checks every 50 us.

/// The address for the kernel, which knows words of 32 bits only: the lower half of a longer word.
template <class Word>
const void* futex_of(const Atomic<Word>& word) noexcept {
  static_assert(sizeof word == sizeof(Word) && (sizeof(Word) == 4 || sizeof(Word) == 8));
  constexpr std::size_t offset = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : sizeof(Word) - 4;
  return reinterpret_cast<const char*>(&word) + offset;
}

/// Sleeps while `word`, of 32 or 64 bits, holds `expected`. Only the lower half of a 64-bit word counts. May return
/// early, so callers check again.
template <class Word>
void park(const Atomic<Word>& word, std::type_identity_t<Word> expected) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, futex_of(word), FUTEX_WAIT_PRIVATE, static_cast<std::uint32_t>(expected), nullptr, nullptr, 0);
#else
  const timespec while_somebody_may_write{.tv_sec = 0, .tv_nsec = 50'000};
  if (word.load() == expected) ::nanosleep(&while_somebody_may_write, nullptr);
#endif
}

/// The same, but returns at the time `until` at the latest.
template <class Word>
void park_until(const Atomic<Word>& word, std::type_identity_t<Word> expected, Clock::Time until) noexcept {
#if defined(__linux__)
  timespec time{};
  time.tv_sec = static_cast<decltype(time.tv_sec)>(until / 1'000'000'000);
  time.tv_nsec = static_cast<decltype(time.tv_nsec)>(until % 1'000'000'000);
  // FUTEX_WAIT_BITSET takes a point in time, FUTEX_WAIT a duration. FUTEX_WAKE wakes both.
  ::syscall(SYS_futex, futex_of(word), FUTEX_WAIT_BITSET_PRIVATE, static_cast<std::uint32_t>(expected), &time, nullptr,
            FUTEX_BITSET_MATCH_ANY);
#else
  if (Clock::now() < until) park(word, expected);
#endif
}

/// Wakes all threads that sleep on `word`. Accesses no memory, so the word may be gone already.
template <class Word>
void unpark_all([[maybe_unused]] const Atomic<Word>& word) noexcept {
#if defined(__linux__)
  ::syscall(SYS_futex, futex_of(word), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#endif
}

/// One turn of a spin loop: tells the core that the thread only waits.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#elif defined(__powerpc64__)
  asm volatile("or 27,27,27" ::: "memory");  // "yield" in the Power ISA
#elif defined(__riscv)
  asm volatile(".4byte 0x0100000f" ::
                   : "memory");  // "pause" of Zihintpause; cores without it run it as a fence of nothing
#endif
}

}}}  // namespace fanout::v0::detail
