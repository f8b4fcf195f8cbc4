// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/sync/atomic.hpp>
#include <fanout/waiting/body_time.hpp>
#include <fanout/waiting/handing_out.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What is learnt of a model's calls. From any thread.
struct CallTimes {
  BodyTime body;
  HandingOut handing_out;

  /// Whether a call that keeps all its shards is to be noted: one in eight, since to look at the clock takes longer
  /// than many a shard.
  bool is_kept_call_noted() noexcept {
    const std::uint32_t before = kept_calls_.load(MemoryOrder::relaxed);
    kept_calls_.store(before + 1, MemoryOrder::relaxed);
    return before % 8 == 0;
  }

  /// A call's own shard took so long that another thread ran what the call had kept: perhaps one waits for the other.
  /// So the next calls that would keep some keep none: a thousand, and after each time twice as many. In the end, to
  /// find it out costs less than handing out.
  void note_found() noexcept {
    const std::uint32_t calls = next_pause_.load(MemoryOrder::relaxed);
    pause_.store(calls, MemoryOrder::relaxed);
    if (calls < longest_pause) next_pause_.store(2 * calls, MemoryOrder::relaxed);
  }

  /// For a call that would keep shards: false if it is one of those.
  bool may_keep() noexcept {
    const std::uint32_t calls = pause_.load(MemoryOrder::relaxed);
    if (calls == 0) return true;
    pause_.store(calls - 1, MemoryOrder::relaxed);
    return false;
  }

 private:
  static constexpr std::uint32_t longest_pause = 65'536;

  Atomic<std::uint32_t> kept_calls_{0};
  Atomic<std::uint32_t> pause_{0};  // how many more calls keep none
  Atomic<std::uint32_t> next_pause_{1'024};
};

}}}  // namespace fanout::v0::detail
