// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/deadline_part.hpp>

#include <cstddef>
#include <utility>

#include <fanout/base/small_vector.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline LateShard late_shard(const CallFrame& frame, std::size_t i) noexcept {
  const Shard& shard = frame.as_run()[i];
  return {.shard = frame.place->first_shard + i,
          .device = frame.devices[shard.device],
          .rows = frame.place->in_batch(shard.rows)};
}

/// The plan of the shards that were in time: their rows, without gaps.
inline Plan plan_in_time(const CallFrame& frame) {
  Plan in_time;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (frame.remains(i).lateness.is_late()) continue;
    const Shard& shard = frame.as_run()[i];
    const std::size_t begin = in_time.rows();
    in_time.add({.rows = {begin, begin + shard.rows.size()}, .device = shard.device});
  }
  return in_time;
}

void tell_late_shards(CallFrame& frame) noexcept {
  for (std::size_t i = 0; i < frame.size(); ++i) {
    ShardRemains& shard = frame.remains(i);
    if (!shard.lateness.look() || std::exchange(shard.told_late, true)) continue;
    if (frame.settings.late_sink == nullptr) continue;
    try {
      (*frame.settings.late_sink)(late_shard(frame, i));
    } catch (...) {  // an exception of the sink must not break the call
    }
  }
}

void throw_late_shards(CallFrame& frame, KeepResults& keep, void* outputs) {
  SmallVector<LateShard> late;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (frame.remains(i).lateness.is_late()) late.push_back(late_shard(frame, i));
  }
  if (late.size() == 0) return;
  Timeout timeout(std::move(late), frame.size(), frame.settings.deadline);
  try {
    const Plan in_time = plan_in_time(frame);
    if (in_time.size() != 0) keep(outputs, in_time, timeout);
  } catch (...) {  // no results then: the caller must learn of the Timeout
  }
  throw timeout;
}

}}}  // namespace fanout::v0::detail
