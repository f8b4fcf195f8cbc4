// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_state.hpp>
#include <fanout/sync/virtual_time.hpp>

namespace fanout { inline namespace v0 { namespace detail {

class SimulatedThread;

/// The innermost of this thread; null if it has none.
[[gnu::visibility("default")]] inline thread_local constinit const SimulatedThread* innermost_simulated = nullptr;

/// While this lives, what the thread does in the simulation moves this time, instead of that of the simulation or of
/// the device that it has entered. So one thread can do what many threads would do at the same time.
class SimulatedThread {
 public:
  SimulatedThread(Simulation& simulation, Clock::Time begin) noexcept
      : simulation_(simulation), outer_(innermost_simulated) {
    time_.raise(begin);
    innermost_simulated = this;
  }
  SimulatedThread(const SimulatedThread&) = delete;
  SimulatedThread& operator=(const SimulatedThread&) = delete;
  ~SimulatedThread() { innermost_simulated = outer_; }

  VirtualTime& time() const noexcept { return time_; }

  /// The time of this thread in the simulation.
  static VirtualTime& callers_time(Simulation& simulation) noexcept {
    const SimulatedThread* thread = innermost_simulated;
    while (thread != nullptr && &thread->simulation_ != &simulation) thread = thread->outer_;
    return thread == nullptr ? simulation.now : thread->time_;
  }

 private:
  friend class EnteredSimulated;

  Simulation& simulation_;
  const SimulatedThread* const outer_;
  const SimulatedState* entered_ = nullptr;
  mutable VirtualTime time_;
};

/// While this lives, the thread works for the device. It begins when the work before it has ended.
class EnteredSimulated : public SimulatedThread {
 public:
  explicit EnteredSimulated(SimulatedState& state) noexcept
      : SimulatedThread(state.simulation(), callers_time(state.simulation()).now()), state_(state) {
    entered_ = &state;
    time().raise(state.left().now());
  }
  ~EnteredSimulated() { state_.left().raise(time().now()); }

  /// True if this thread has entered the device.
  static bool has_entered(const SimulatedState& state) noexcept {
    const SimulatedThread* thread = innermost_simulated;
    while (thread != nullptr && thread->entered_ != &state) thread = thread->outer_;
    return thread != nullptr;
  }

 private:
  SimulatedState& state_;
};

/// The time of this thread in the device's simulation.
inline VirtualTime& callers_time(const SimulatedState& state) noexcept {
  return SimulatedThread::callers_time(state.simulation());
}

}}}  // namespace fanout::v0::detail
