// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/simulated/simulated_state.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// All simulated devices of the process, by the index of their ids: blocks of 64, 128, 256, ... devices. Finding one
/// takes no lock.
class SimulatedStates {
 public:
  SimulatedState& operator[](int index) const noexcept {
    const Place place = place_of(static_cast<std::size_t>(index));
    return *blocks_[place.block].load(MemoryOrder::acquire)[place.at].load(MemoryOrder::acquire);
  }

  /// Adds a device, with the next index. Throws std::bad_alloc.
  SimulatedState& add(Simulation& simulation, std::size_t position, const SimulatedDeviceOptions& options) {
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

 private:
  static constexpr std::size_t first = 64;

  struct Place {
    std::size_t block;
    std::size_t at;
  };
  static constexpr Place place_of(std::size_t index) noexcept {
    std::size_t block = 0;
    while (index >= first << block) index -= first << block++;
    return {block, index};
  }

  Atomic<Atomic<SimulatedState*>*> blocks_[26]{};  // for all indices that an int can hold
  ForkSafeMutex mutex_;
  std::size_t size_ = 0;
};

[[gnu::visibility("default")]] inline constinit SimulatedStates simulated_states{};

}}}  // namespace fanout::v0::detail
