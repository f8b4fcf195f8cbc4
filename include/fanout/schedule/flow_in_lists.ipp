// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/flow_in_lists.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void FlowInLists::step_was_posted() noexcept {
  for (Entry& entry : entries_) entry.calls()->remind(entry);
}

void FlowInLists::flow_has_ended() noexcept {
  call_.set_running(false);  // before the models let anyone go on: whoever waited for them finds the call ready
  for (Entry& entry : entries_) entry.calls()->end_call(entry);
}

}}}  // namespace fanout::v0::detail
