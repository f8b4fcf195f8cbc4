// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/sync/shared_mutex.hpp>

#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

std::uint32_t SharedMutex::enter_unless(std::uint32_t bits) noexcept {
  for (;;) {
    const std::uint32_t turn = turn_.load(MemoryOrder::acquire);
    std::uint64_t seen = current();
    if ((seen & bits) == 0) {
      if (word_.compare_exchange_weak(seen, seen + one, MemoryOrder::acquire)) return entered(seen);
    } else {
      park(turn_, turn);
    }
  }
}

std::uint64_t SharedMutex::current() noexcept {
  std::uint64_t seen = word_.load(MemoryOrder::acquire);
  while ((static_cast<std::uint32_t>(seen) & ~(closed | alone)) != now()) {
    const std::uint64_t kept = seen >> 32U << 32U;
    if (!word_.compare_exchange_weak(seen, kept | now() | closed | alone, MemoryOrder::acquire)) continue;
    // For a moment this thread holds the exclusive lock, and marks all shared locks as released.
    left_.store(entered(kept), MemoryOrder::relaxed);
    unlock();
    seen = word_.load(MemoryOrder::acquire);
  }
  return seen;
}

void SharedMutex::tell_if_last() noexcept {
  if (entered(word_.load(MemoryOrder::seq_cst)) == left_.load(MemoryOrder::seq_cst)) signal();
}

void SharedMutex::signal() noexcept {
  turn_.fetch_add(1, MemoryOrder::release);
  unpark_all(turn_);
}

}}}  // namespace fanout::v0::detail
