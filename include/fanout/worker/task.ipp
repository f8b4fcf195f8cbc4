// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/task.hpp>

#include <cstdint>

#include <fanout/sync/spin.hpp>

namespace fanout { inline namespace v0 { namespace detail {

bool Task::wait(std::int64_t spin_ticks, std::uint32_t epoch, Clock::Time until) noexcept {
  if ((until != Clock::never && spin_ticks == Ticks::forever) || epoch != fork_epoch()) spin_ticks = 0;
  if (spin(spin_ticks, [this] { return is_done(); })) return true;
  while (!is_done()) {
    if (epoch != fork_epoch()) return false;
    if (until == Clock::never) {
      if (will_wake()) park(state_, awaited);
    } else {
      if (Clock::now() >= until) return false;
      if (will_wake()) park_until(state_, awaited, until);
    }
  }
  return true;
}

void Task::run() noexcept {
  run_(*this);
  if (state_.exchange(done, MemoryOrder::acq_rel) == awaited) unpark_all(state_);
}

}}}  // namespace fanout::v0::detail
