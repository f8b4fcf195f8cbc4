// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/simulated/simulated_device_options.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
#include <fanout/sync/virtual_time.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The devices of one call of simulated_devices(), and the time of the threads that use them.
struct Simulation {
  VirtualTime now;
};

/// What one simulated device has done so far. Lives until the process ends, since tensors may outlive the devices.
class SimulatedState {
 public:
  SimulatedState(Simulation& simulation, std::size_t position, int index, const SimulatedDeviceOptions& options)
      : simulation_(simulation), position_(position), options_(options), worker_({"sim", index}, {}, false) {}
  SimulatedState(const SimulatedState&) = delete;
  SimulatedState& operator=(const SimulatedState&) = delete;

  Simulation& simulation() const noexcept { return simulation_; }
  const SimulatedDeviceOptions& options() const noexcept { return options_; }
  /// Not one of the registry, which searches its list for each new device: there may be thousands of simulations.
  backend::Worker& worker() noexcept { return worker_; }
  const DeviceId& id() const noexcept { return worker_.id(); }

  /// The times at which its last shard, its last copy to the device and its last copy from the device end. The three do
  /// not wait for each other.
  VirtualTime& busy() noexcept { return busy_; }
  VirtualTime& receives() noexcept { return receives_; }
  VirtualTime& sends() noexcept { return sends_; }
  /// The time at which a thread has left the device last. Threads that enter it come one after the other.
  VirtualTime& left() noexcept { return left_; }

  /// The end of all that the device was given.
  Clock::Time done() const noexcept {
    Clock::Time end = 0;
    for (const VirtualTime* const each : {&busy_, &receives_, &sends_, &left_})
      end = end < each->now() ? each->now() : end;
    return end;
  }

  /// Computes a shard, which begins at `earliest` or later. Returns the time at which it ends. Throws DeviceError if
  /// this shard is to fail.
  FANOUT_INLINE Clock::Time run_shard(std::size_t rows, Clock::Time earliest);

  /// What a copy of so many bytes takes on the link.
  Clock::Time copy_time(std::size_t bytes) const noexcept {
    return later_by(options_.latency.nanoseconds(), time_for(bytes, options_.bandwidth));
  }

  std::size_t free_memory() const noexcept { return options_.memory - used_.load(MemoryOrder::relaxed); }

  /// Counts memory as used. Throws OutOfMemory if there is not so much.
  FANOUT_INLINE void claim(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, MemoryOrder::relaxed); }

 private:
  /// Noise never makes a shard more than ten times as fast.
  FANOUT_INLINE Clock::Time with_noise(Clock::Time work, std::uint64_t shard) const noexcept;

  /// The end of work that takes `work` if the device is not slowed down.
  FANOUT_INLINE Clock::Time end_of(Clock::Time begin, Clock::Time work) const noexcept;

  [[noreturn]] FANOUT_INLINE void refuse_bytes_of(std::size_t bytes, std::size_t used) const;

  Simulation& simulation_;
  const std::size_t position_;  // in the simulation: the noise must not depend on earlier simulations
  const SimulatedDeviceOptions options_;
  backend::Worker worker_;
  VirtualTime busy_;
  VirtualTime receives_;
  VirtualTime sends_;
  VirtualTime left_;
  Atomic<std::uint64_t> shards_{0};
  Atomic<std::size_t> used_{0};
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/simulated/simulated_state.ipp>
#endif
