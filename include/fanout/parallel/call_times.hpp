// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <fanout/parallel/body_time.hpp>
#include <fanout/parallel/handing_out.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout::inline v0 {

/// What is learnt of a model's calls. From any thread.
struct CallTimes {
  BodyTime body;
  HandingOut handing_out;

  /// Whether a call that keeps all its shards is to be noted: one in eight, since to look at the clock takes longer than
  /// many a shard.
  bool is_kept_call_noted() noexcept {
    const std::uint32_t before = kept_calls_.load(MemoryOrder::relaxed);
    kept_calls_.store(before + 1, MemoryOrder::relaxed);
    return before % 8 == 0;
  }

 private:
  Atomic<std::uint32_t> kept_calls_{0};
};

}  // namespace fanout::inline v0
