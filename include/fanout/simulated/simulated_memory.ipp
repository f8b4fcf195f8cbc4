// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_memory.hpp>

#include <cstring>

#include <fanout/memory/copy_bytes.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void* allocate_simulated(const MemorySpace& space, std::size_t bytes) {
  SimulatedState& state = simulated_states[space.owner.index];
  state.claim(bytes);
  try {
    return backend::host_memory_operations.allocate(host_memory, bytes);
  } catch (...) {
    state.give_back(bytes);
    throw;
  }
}

void copy_simulated(const MemorySpace& space, void* to, const void* from, std::size_t bytes) {
  SimulatedState& state = simulated_states[space.owner.index];
  state.busy().raise(callers_time(state).now());
  copy_bytes(to, from, bytes);
  await_simulated(state);
}

void clear_simulated(const MemorySpace& space, void* data, std::size_t bytes) {
  SimulatedState& state = simulated_states[space.owner.index];
  state.busy().raise(callers_time(state).now());
  if (bytes != 0) std::memset(data, 0, bytes);
  await_simulated(state);
}

void begin_transfer_simulated(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                              std::size_t bytes) {
  if (bytes == 0) return;
  if (to == from) return copy_simulated(to, to_data, from_data, bytes);
  copy_bytes(to_data, from_data, bytes);
  SimulatedState* const target = simulated_owner(to);
  SimulatedState* const source = simulated_owner(from);
  const auto charge = [](SimulatedState& state, Clock::Time earliest, Clock::Time takes) {
    const Clock::Time called = callers_time(state).now();
    return state.busy().work(called < earliest ? earliest : called,
                             [takes](Clock::Time begin) { return later_by(begin, takes); });
  };
  if (target != nullptr && source != nullptr && &target->simulation() == &source->simulation()) {
    const Clock::Time takes_target = target->copy_time(bytes);
    const Clock::Time takes_source = source->copy_time(bytes);
    const Clock::Time end = charge(*target, source->busy().now(),  //
                                   takes_target < takes_source ? takes_source : takes_target);
    source->busy().raise(end);
    return;
  }
  if (target != nullptr) charge(*target, 0, target->copy_time(bytes));
  if (source != nullptr) charge(*source, 0, source->copy_time(bytes));
}

void transfer_all_simulated(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    begin_transfer_simulated(to, transfers[i].to_data, transfers[i].from, transfers[i].from_data, transfers[i].bytes);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (transfers[i].bytes != 0) end_transfer_simulated(to, transfers[i].from);
  }
}

}}}  // namespace fanout::v0::detail
