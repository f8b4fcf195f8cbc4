// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/processor.hpp>
#if defined(__linux__)
#include <fanout/sync/linux_futex.hpp>
#else
#include <fanout/sync/polled_futex.hpp>
#endif

namespace fanout { inline namespace v0 { namespace detail {

#if defined(__linux__)
using SystemFutex = LinuxFutex;
#else
using SystemFutex = PolledFutex;
#endif

// std::atomic::wait keeps its waiters in a static of libstdc++'s headers. Two shared libraries may have two copies of
// it, so a wake in one would not reach a waiter in the other. Linux's futex has no such list.

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
  if (!SystemFutex::compares && word.load() != expected) return;
  SystemFutex::wait(futex_of(word), static_cast<std::uint32_t>(expected));
}

/// The same, but returns at the time `until` at the latest.
template <class Word>
void park_until(const Atomic<Word>& word, std::type_identity_t<Word> expected, Clock::Time until) noexcept {
  if (!SystemFutex::compares && word.load() != expected) return;
  SystemFutex::wait_until(futex_of(word), static_cast<std::uint32_t>(expected), until);
}

/// Wakes all threads that sleep on `word`. Accesses no memory, so the word may be gone already.
template <class Word>
void unpark_all(const Atomic<Word>& word) noexcept {
  SystemFutex::wake_all(futex_of(word));
}

/// One turn of a spin loop: tells the core that the thread only waits.
inline void pause() noexcept { Processor::pause(); }

}}}  // namespace fanout::v0::detail
