// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_states.hpp>

namespace fanout { inline namespace v0 { namespace detail {

SimulatedState& SimulatedStates::add(Simulation& simulation, std::size_t position,
                                     const SimulatedDeviceOptions& options) {
  const ForkSafeLock adding(mutex_);
  const Place place = place_of(size_);
  if (blocks_[place.block].load(MemoryOrder::relaxed) == nullptr) {
    blocks_[place.block].store(
        new Atomic<SimulatedState*>[first << place.block] {}, MemoryOrder::release);
  }
  auto* const state = new SimulatedState(simulation, position, static_cast<int>(size_), options);
  blocks_[place.block].load(MemoryOrder::relaxed)[place.at].store(state, MemoryOrder::release);
  ++size_;
  return *state;
}

}}}  // namespace fanout::v0::detail
