// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/parallel/model_state.hpp>

#include <cstdint>

#include <fanout/base/error.hpp>
#include <fanout/call/call_scope.hpp>

namespace fanout { inline namespace v0 { namespace detail {

std::uint32_t EnteredModel::enter_from_inside(SharedMutex& mutex, const void* original) {
  const CallScope* const outer = find_original(current_call(), original);
  if (outer != nullptr && outer->updating) {
    throw Error(explain(
        {.what = "a model was called from inside its own update", .advice = "call it after update() has returned"}));
  }
  return mutex.lock_shared_nested();
}

}}}  // namespace fanout::v0::detail
