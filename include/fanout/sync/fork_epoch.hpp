// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <pthread.h>

#include <fanout/base/annotate.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// Counted from the time the program or library is loaded, and not from the first use: a process that forks while
// another thread is just setting a static variable up leaves the child waiting for that thread.
FANOUT_EXPORT inline Atomic<std::uint32_t> forks{0};
FANOUT_EXPORT inline const bool forks_are_counted =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, MemoryOrder::relaxed); }) == 0;

/// How many times the line of processes that leads to this one has forked since fanout was loaded. After a fork the
/// child has one thread; whatever other threads held in the parent, nobody holds in the child. What can be held
/// therefore notes the epoch in which it was taken, and a holder of an older epoch counts as gone.
inline std::uint32_t fork_epoch() noexcept {
  static_cast<void>(forks_are_counted);
  return forks.load(MemoryOrder::relaxed);
}

}}}  // namespace fanout::v0::detail
