// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

[[gnu::visibility("default")]] inline Atomic<std::uint32_t> numbered_threads{0};

/// The number of this thread: 1 for the first thread of the process that asks.
inline std::uint32_t thread_number() noexcept {
  static thread_local const std::uint32_t number = numbered_threads.fetch_add(1, MemoryOrder::relaxed) + 1;
  return number;
}

}}}  // namespace fanout::v0::detail
