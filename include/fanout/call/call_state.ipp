// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/call_state.hpp>

#include <memory>

namespace fanout { inline namespace v0 { namespace detail {

void CallState::again() {
  const bool shards_may_meet = rendezvous.notes_ends();
  std::destroy_at(&outputs);
  std::construct_at(&outputs, target)->write_to(request.targets, request.target_count);
  std::destroy_at(&rendezvous);
  std::construct_at(&rendezvous, plan.size(), shards_may_meet);
}

}}}  // namespace fanout::v0::detail
