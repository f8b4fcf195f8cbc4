// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/deal_part.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

#include <fanout/call/moved_shards.hpp>
#include <fanout/dispatch/deal.hpp>
#include <fanout/recovery/recovery.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void begin_deal(CallFrame& frame, ForkJoin& shards, const DeviceTable& devices, const TypedCall& call) {
  Deal& deal = MovedShards::of(frame).deal.emplace(frame.plan, devices, call, shards.runner());
  const Recovery* const recovery = frame.settings.recovery;
  if (frame.plan.runs_in_turns() && recovery != nullptr) {
    const std::uint64_t shape = call.shape();
    for (std::size_t i = 0; i < devices.size(); ++i) deal.limit(i, recovery->limits().most(shape, i));
  }
  shards.run_instead(deal.dealers(), deal);
}

void end_deal(CallFrame& frame) {
  if (!frame.moved()) return;
  std::optional<Deal>& deal = frame.moved()->deal;
  if (deal) frame.ran_by(deal->as_run());
}

}}}  // namespace fanout::v0::detail
