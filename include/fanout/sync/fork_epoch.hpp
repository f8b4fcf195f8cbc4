// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <pthread.h>

#include <fanout/base/requirements.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

// Counted from the time the program or library is loaded, not from the first use. A process may fork while another
// thread initialises a static variable at first use. The child would wait for that thread forever.
[[gnu::visibility("default")]] inline Atomic<std::uint32_t> forks{0};
[[gnu::visibility("default")]] inline const bool forks_are_counted =
    ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, MemoryOrder::relaxed); }) == 0;

/// The number of forks between the process that loaded fanout and this one. The child of a fork has one thread: nobody
/// in it holds what other threads held in the parent. So whatever can be held notes the epoch in which it was taken. A
/// holder of an older epoch counts as gone.
inline std::uint32_t fork_epoch() noexcept {
  static_cast<void>(forks_are_counted);
  return forks.load(MemoryOrder::relaxed);
}

}}}  // namespace fanout::v0::detail
