// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// A shard of a measured call, by the call's id. An id of 0 is none.
struct MeasuredShard {
  std::uint64_t call = 0;
  std::uint32_t shard = 0;
};

/// The innermost measured shard that this thread runs.
[[gnu::visibility("default")]] inline MeasuredShard& measured_shard() noexcept {
  static thread_local MeasuredShard shard;
  return shard;
}

/// The number of calls that the process has measured.
[[gnu::visibility("default")]] inline Atomic<std::uint64_t> measured_calls{0};

}}}  // namespace fanout::v0::detail
