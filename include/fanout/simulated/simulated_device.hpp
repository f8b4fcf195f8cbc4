// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/launcher.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/simulated/entered_simulated.hpp>
#include <fanout/simulated/simulated_device_options.hpp>
#include <fanout/simulated/simulated_memory.hpp>
#include <fanout/simulated/simulated_state.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// A device that computes on the calling thread, with a memory and a clock of its own, and that fails when it is told
/// to. Made by simulated_devices(). A small value; copies are the same device.
///
/// Its time is virtual: it moves by what shards and copies are said to take, whatever they really take. Work begins
/// when the device has ended its earlier work, but not before the thread's own time. That is the time of the device
/// that the thread has entered, or the time of the simulation. A thread that has entered no device waits for what it
/// asks for, which moves the time of the simulation. Thread-safe. If one thread uses a simulation, its times are the
/// same in each run.
class SimulatedDevice {
 public:
  static constexpr bool has_own_memory = true;

  explicit SimulatedDevice(detail::SimulatedState& state) noexcept : state_(&state) {}

  const DeviceId& id() const noexcept { return state_->id(); }
  /// Host memory that only this device uses. The host may read and write it in place.
  backend::Memory memory() const noexcept { return {{state_->id()}, &backend::simulated_memory_operations}; }
  /// Has no thread.
  backend::Worker& worker() const noexcept { return state_->worker(); }

  /// Until the result is destroyed, what the thread does moves the time of this device only.
  detail::EnteredSimulated enter() const noexcept { return detail::EnteredSimulated(*state_); }

  /// Waits, in virtual time, for all work that the device was given.
  void synchronize() const noexcept { detail::await_simulated(*state_); }

  /// Stands for the device's work so far. Waiting for it moves the thread's time to the end of that work. Throws
  /// OutOfMemory.
  backend::Completion completion() const {
    const bool has_entered = detail::EnteredSimulated::has_entered(*state_);
    return {&Ended::finish, new Ended{{}, state_, has_entered ? detail::callers_time(*state_).now() : state_->done()}};
  }

  /// Computes a shard of so many rows, in virtual time. Throws DeviceError if this shard is to fail, at its end.
  void ran(std::size_t rows) const {
    detail::VirtualTime& caller = detail::callers_time(*state_);
    caller.raise(state_->run_shard(rows, caller.now()));
  }

  /// The virtual time in nanoseconds. On a thread that has entered the device, the end of all that the device was
  /// given. On other threads, the thread's own time.
  std::int64_t time() const noexcept {
    const detail::Clock::Time callers = detail::callers_time(*state_).now();
    if (!detail::EnteredSimulated::has_entered(*state_)) return callers;
    const detail::Clock::Time done = state_->done();
    return done < callers ? callers : done;
  }

  /// Until the result is destroyed, what the thread does in the simulation moves a time of its own, which begins at
  /// `time`, but not before the device has ended its earlier shards: as if the device's thread did it.
  detail::SimulatedThread thread_from(std::int64_t time) const noexcept {
    const std::int64_t free = state_->busy().now();
    return {state_->simulation(), time < free ? free : time};
  }
  /// Moves the thread's own time to `time`, unless it is later.
  void wait_until(std::int64_t time) const noexcept { detail::callers_time(*state_).raise(time); }

  /// Bytes of its memory that are not in use.
  std::size_t free_memory() const noexcept { return state_->free_memory(); }

  const SimulatedDeviceOptions& options() const noexcept { return state_->options(); }

  /// Empty: simulated devices are made, not found.
  static std::vector<SimulatedDevice> visible() { return {}; }

  friend bool operator==(const SimulatedDevice&, const SimulatedDevice&) = default;

 private:
  struct Ended : detail::Pooled {
    detail::SimulatedState* state;
    detail::Clock::Time end;

    static void finish(void* what) {
      auto* const ended = static_cast<Ended*>(what);
      detail::callers_time(*ended->state).raise(ended->end);
      delete ended;
    }
  };

  detail::SimulatedState* state_;
};
static_assert(HasOwnMemory<SimulatedDevice>);

template <>
struct backend::Launcher<SimulatedDevice> : backend::LoopLauncher {};

}}  // namespace fanout::v0
