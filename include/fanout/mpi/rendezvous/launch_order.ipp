// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/mpi/rendezvous/launch_order.hpp>

#include <algorithm>

namespace fanout { inline namespace v0 { namespace detail {

void LaunchOrder::Place::hear(Turn other) {
  const std::lock_guard changing(order_.mutex_);
  order_.last_ = std::max(order_.last_, other >> bits_of_process);
  if (other < turn_) return;
  order_.turns_.insert(other);
  order_.turns_.erase(turn_);
  turn_ = other;
}

}}}  // namespace fanout::v0::detail
