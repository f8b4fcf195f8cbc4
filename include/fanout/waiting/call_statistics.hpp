// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/waiting/dispatch_cost.hpp>
#include <fanout/waiting/shard_time_estimate.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What the calls of a model have measured. Thread-safe.
struct CallStatistics {
  ShardTimeEstimate body;
  DispatchCost dispatch_cost;

  /// True for one in eight calls that run all shards inline: only these are measured, since reading the clock may take
  /// longer than a shard.
  bool is_inline_call_noted() noexcept {
    const std::uint32_t before = inline_calls_.load(MemoryOrder::relaxed);
    inline_calls_.store(before + 1, MemoryOrder::relaxed);
    return before % 8 == 0;
  }

  /// Notes that a device's thread ran a deferred shard, since the caller's own shard took too long. Perhaps that one
  /// waits for the deferred one. The next 1024 calls dispatch all shards, and each further time twice as many.
  void note_found() noexcept {
    const std::uint32_t calls = next_pause_.load(MemoryOrder::relaxed);
    pause_.store(calls, MemoryOrder::relaxed);
    if (calls < longest_pause) next_pause_.store(2 * calls, MemoryOrder::relaxed);
  }

  /// True if a call may run shards inline. False for those calls after note_found().
  bool may_inline() noexcept {
    const std::uint32_t calls = pause_.load(MemoryOrder::relaxed);
    if (calls == 0) return true;
    pause_.store(calls - 1, MemoryOrder::relaxed);
    return false;
  }

 private:
  static constexpr std::uint32_t longest_pause = 65'536;

  Atomic<std::uint32_t> inline_calls_{0};
  Atomic<std::uint32_t> pause_{0};  // number of calls to come that dispatch all shards
  Atomic<std::uint32_t> next_pause_{1'024};
};

}}}  // namespace fanout::v0::detail
