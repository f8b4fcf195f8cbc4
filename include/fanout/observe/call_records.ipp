// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/observe/call_records.hpp>

#include <fanout/plan/shard.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void CallRecords::ended(const CallTimes& call) noexcept {
  if (calls_.size() >= most_ && (keeps_first_ || most_ == 0)) {
    ++dropped_;
    return;
  }
  const std::size_t shards = shards_.size();
  try {
    for (std::size_t i = 0; i < call.plan->size(); ++i) {
      const Shard& shard = (*call.plan)[i];
      shards_.push_back({.device = call.devices[shard.device], .rows = shard.rows, .times = call.shards[i]});
    }
    calls_.push_back({.began = call.began,
                      .planned = call.began + call.planned,
                      .gather = call.began + call.joined + call.idle,
                      .ended = call.began + call.ended,
                      .id = call.id,
                      .outer = call.outer,
                      .outer_shard = call.outer_shard,
                      .number = call.number,
                      .thread = call.thread,
                      .gatherer = call.gatherer,
                      .step = call.step,
                      .model = name(call.model),
                      .shards = static_cast<std::uint32_t>(call.plan->size()),
                      .asynchronous = call.asynchronous,
                      .own_clock = call.own_clock,
                      .failed = call.failed});
  } catch (...) {  // without memory, the call is dropped
    while (shards_.size() > shards) shards_.pop_back();
    ++dropped_;
    return;
  }
  if (calls_.size() > most_) drop_earliest();
}

std::uint32_t CallRecords::name(std::string_view model) {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i] == model) return static_cast<std::uint32_t>(i);
  }
  models_.emplace_back(model);
  return static_cast<std::uint32_t>(models_.size() - 1);
}

}}}  // namespace fanout::v0::detail
