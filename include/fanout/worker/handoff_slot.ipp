// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/worker/handoff_slot.hpp>

#include <cstdint>

#include <sched.h>

namespace fanout { inline namespace v0 { namespace detail {

void HandoffSlot::lock() noexcept {
  while (!try_lock()) {
    std::uint64_t seen = current();
    if (phase(seen) != free && will_wake(seen)) park(word_, seen);
  }
}

bool HandoffSlot::await(Ticket request, std::int64_t spin_ticks, std::uint32_t epoch, Clock::Time until) noexcept {
  if ((until != Clock::never && spin_ticks == Ticks::forever) || epoch != fork_epoch()) spin_ticks = 0;
  if (spin(spin_ticks, [&] { return is_complete(request); })) return true;
  while (!is_complete(request)) {
    if (epoch != fork_epoch()) return false;
    std::uint64_t seen = word_.load(MemoryOrder::acquire);
    if (!is_of(seen, request) || !will_wake(seen)) continue;
    if (until == Clock::never) {
      park(word_, seen);
    } else {
      if (Clock::now() >= until) return is_complete(request);
      park_until(word_, seen, until);
    }
  }
  return true;
}

void HandoffSlot::start_polling() noexcept {
  std::uint64_t seen = word_.load(MemoryOrder::relaxed);
  while (phase(seen) == claimed || !word_.compare_exchange_weak(seen, seen + polling, MemoryOrder::acq_rel)) {
    if (phase(seen) == claimed) ::sched_yield(), seen = word_.load(MemoryOrder::relaxed);
  }
}

bool HandoffSlot::stop_polling() noexcept {
  std::uint64_t seen = word_.load(MemoryOrder::relaxed);
  while (phase(seen) < posted) {
    if (phase(seen) == claimed) {
      ::sched_yield();  // the poster that writes may need this core
      seen = word_.load(MemoryOrder::relaxed);
    } else if (word_.compare_exchange_weak(seen, seen - polling, MemoryOrder::acq_rel)) {
      return true;
    }
  }
  return false;
}

void HandoffSlot::await_change() noexcept {
  std::uint64_t seen = current();
  if ((phase(seen) == held || phase(seen) == claimed) && will_wake(seen)) park(word_, seen);
}

}}}  // namespace fanout::v0::detail
