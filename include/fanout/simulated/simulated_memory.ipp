// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_memory.hpp>

#include <cstddef>
#include <cstring>

#include <fanout/base/inline_array.hpp>
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
  callers_time(state).raise(state.busy().now());
  copy_bytes(to, from, bytes);
}

void clear_simulated(const MemorySpace& space, void* data, std::size_t bytes) {
  SimulatedState& state = simulated_states[space.owner.index];
  callers_time(state).raise(state.busy().now());
  if (bytes != 0) std::memset(data, 0, bytes);
}

/// Copies. `wait(state, end)` is told when the copy ends on the link of each device.
template <class Wait>
void copy_over_links(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                     std::size_t bytes, const Wait& wait) {
  if (bytes == 0) return;
  if (to == from) return copy_simulated(to, to_data, from_data, bytes);
  copy_bytes(to_data, from_data, bytes);
  SimulatedState* const target = simulated_owner(to);
  SimulatedState* const source = simulated_owner(from);
  const auto send = [](SimulatedState& over, VirtualTime& link, Clock::Time earliest, Clock::Time takes) {
    const Clock::Time called = callers_time(over).now();
    if (takes == 0) return called;  // it does not wait for copies of a step that began later but was run earlier
    return link.work(called < earliest ? earliest : called,
                     [takes](Clock::Time begin) { return later_by(begin, takes); });
  };
  if (target != nullptr && source != nullptr && &target->simulation() == &source->simulation()) {
    const Clock::Time takes_target = target->copy_time(bytes);
    const Clock::Time takes_source = source->copy_time(bytes);
    const Clock::Time end = send(*target, target->receives(), source->sends().now(),
                                 takes_target < takes_source ? takes_source : takes_target);
    source->sends().raise(end);
    return wait(*target, end);
  }
  if (target != nullptr) wait(*target, send(*target, target->receives(), 0, target->copy_time(bytes)));
  if (source != nullptr) wait(*source, send(*source, source->sends(), 0, source->copy_time(bytes)));
}

void transfer_simulated(const MemorySpace& to, void* to_data, const MemorySpace& from, const void* from_data,
                        std::size_t bytes) {
  copy_over_links(to, to_data, from, from_data, bytes,
                  [](SimulatedState& over, Clock::Time end) { callers_time(over).raise(end); });
}

void transfer_all_simulated(const MemorySpace& to, const backend::Transfer* transfers, std::size_t count) {
  // All are asked for at the same time, so that those over different links go on at the same time.
  struct End {
    SimulatedState* over = nullptr;
    Clock::Time at = 0;
  };
  InlineArray<End> ends(2 * count);
  std::size_t links = 0;
  for (std::size_t i = 0; i < count; ++i) {
    copy_over_links(to, transfers[i].to_data, transfers[i].from, transfers[i].from_data, transfers[i].bytes,
                    [&](SimulatedState& over, Clock::Time at) {
                      ends[links++] = {&over, at};
                    });
  }
  for (std::size_t i = 0; i < links; ++i) callers_time(*ends[i].over).raise(ends[i].at);
}

}}}  // namespace fanout::v0::detail
