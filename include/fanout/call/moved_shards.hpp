// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>

#include <fanout/call/call_frame.hpp>
#include <fanout/dispatch/deal.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call keeps whose shards run on other devices than planned: the deal, if there is one, and the plan as it ran.
struct MovedShards : Pooled {
  /// Those of this call. The first use makes them. Throws std::bad_alloc.
  static MovedShards& of(CallFrame& frame) {
    Owned<MovedShards>& moved = frame.moved();
    if (!moved) moved = {make_pooled<MovedShards>(), [](MovedShards* made) noexcept { delete made; }};
    return *moved;
  }

  std::optional<Deal> deal;
  Plan as_run;
};

}}}  // namespace fanout::v0::detail
