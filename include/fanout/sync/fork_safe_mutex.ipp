// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/sync/fork_safe_mutex.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

void ForkSafeMutex::wait_for_it() noexcept {
  // Most holders unlock within a microsecond. Sleeping and waking takes longer.
  for (int turn = 0; turn < 64; ++turn) {
    pause();
    if (take_free(held)) return;
  }
  // From here on the word says that a thread may sleep, so that unlock() wakes it. This thread keeps that mark when
  // it locks, since others may still sleep.
  while (!take_free(held_and_wanted)) {
    std::uint32_t seen = word_.load(MemoryOrder::relaxed);
    const std::uint32_t wanted = now() | held_and_wanted;
    if (seen == (now() | held) && word_.compare_exchange_strong(seen, wanted, MemoryOrder::relaxed)) {
      seen = wanted;
    }
    if (seen == wanted) park(word_, wanted);
  }
}

}}}  // namespace fanout::v0::detail
