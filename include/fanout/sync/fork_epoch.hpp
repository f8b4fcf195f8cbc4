// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstdint>

#include <pthread.h>

#include <fanout/base/annotate.hpp>

namespace fanout::inline v0 {

/// How many times the line of processes that leads to this one has forked since fanout was first used in it. After a
/// fork the child has one thread; whatever other threads held in the parent, nobody holds in the child. What can be held
/// therefore notes the epoch in which it was taken, and a holder of an older epoch counts as gone.
FANOUT_EXPORT inline std::uint32_t fork_epoch() noexcept {
  static std::atomic<std::uint32_t> epoch = [] {
    ::pthread_atfork(nullptr, nullptr, [] { epoch.fetch_add(1, std::memory_order_relaxed); });
    return 0U;
  }();
  return epoch.load(std::memory_order_relaxed);
}

}  // namespace fanout::inline v0
