// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/schedule/flow_scope.hpp>

#include <fanout/call/timeout.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void FlowScope::refuse_late() const {
  throw Timeout("a call of a pipeline took longer than its deadline of " + Timeout::to_text(deadline_), {});
}

}}}  // namespace fanout::v0::detail
