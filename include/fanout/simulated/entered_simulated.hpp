// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_state.hpp>
#include <fanout/simulated/virtual_time.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class EnteredSimulated;

/// What this thread has entered last, and not left.
[[gnu::visibility("default")]] inline thread_local constinit const EnteredSimulated* innermost_simulated = nullptr;

/// While this lives, the thread works for the device: it moves the time of the device only.
class EnteredSimulated {
 public:
  explicit EnteredSimulated(SimulatedState& state) noexcept : state_(state), outer_(innermost_simulated) {
    state.busy().raise(callers_time(state.simulation()).now());
    innermost_simulated = this;
  }
  EnteredSimulated(const EnteredSimulated&) = delete;
  EnteredSimulated& operator=(const EnteredSimulated&) = delete;
  ~EnteredSimulated() { innermost_simulated = outer_; }

  /// The time of this thread in the simulation: that of the device that it has entered last, otherwise `now`.
  static VirtualTime& callers_time(Simulation& simulation) noexcept {
    const EnteredSimulated* entered = innermost_simulated;
    while (entered != nullptr && &entered->state_.simulation() != &simulation) entered = entered->outer_;
    return entered == nullptr ? simulation.now : entered->state_.busy();
  }

  /// True if this thread has entered the device.
  static bool has_entered(const SimulatedState& state) noexcept {
    const EnteredSimulated* entered = innermost_simulated;
    while (entered != nullptr && &entered->state_ != &state) entered = entered->outer_;
    return entered != nullptr;
  }

 private:
  SimulatedState& state_;
  const EnteredSimulated* const outer_;
};

/// The time of this thread in the device's simulation.
inline VirtualTime& callers_time(const SimulatedState& state) noexcept {
  return EnteredSimulated::callers_time(state.simulation());
}

}}}  // namespace fanout::v0::detail
