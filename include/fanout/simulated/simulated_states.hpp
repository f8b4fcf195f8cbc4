// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/separate_compilation.hpp>
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
  FANOUT_INLINE SimulatedState& add(Simulation& simulation, std::size_t position,
                                    const SimulatedDeviceOptions& options);

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

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/simulated/simulated_states.ipp>
#endif
