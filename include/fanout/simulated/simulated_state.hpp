// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/simulated/noise.hpp>
#include <fanout/simulated/simulated_device_options.hpp>
#include <fanout/simulated/virtual_time.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>
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

  /// The end of all work that the device was given.
  VirtualTime& busy() noexcept { return busy_; }

  /// Computes a shard, which begins at `earliest` or later. Returns the time at which it ends. Throws DeviceError if
  /// this shard is to fail.
  Clock::Time run_shard(std::size_t rows, Clock::Time earliest) {
    const std::uint64_t shard = shards_.fetch_add(1, MemoryOrder::relaxed) + 1;
    const Clock::Time work =
        with_noise(later_by(options_.launch.nanoseconds(), time_for(rows, options_.rows_per_second)), shard);
    const Clock::Time end = busy_.work(earliest, [&](Clock::Time begin) { return end_of(begin, work); });
    if (options_.fail_at != 0 && shard >= options_.fail_at && shard - options_.fail_at < options_.failures) {
      throw DeviceError(explain({.what = "simulated failure of " + to_string(id()),
                                 .where = "shard " + std::to_string(shard) + " that it ran"}));
    }
    return end;
  }

  /// What a copy of so many bytes takes on the link.
  Clock::Time copy_time(std::size_t bytes) const noexcept {
    return later_by(options_.latency.nanoseconds(), time_for(bytes, options_.bandwidth));
  }

  std::size_t free_memory() const noexcept { return options_.memory - used_.load(MemoryOrder::relaxed); }

  /// Counts memory as used. Throws OutOfMemory if there is not so much.
  void claim(std::size_t bytes) {
    std::size_t used = used_.load(MemoryOrder::relaxed);
    do {
      if (bytes > options_.memory - used) refuse_bytes_of(bytes, used);
    } while (!used_.compare_exchange_weak(used, used + bytes, MemoryOrder::relaxed));
  }
  void give_back(std::size_t bytes) noexcept { used_.fetch_sub(bytes, MemoryOrder::relaxed); }

 private:
  /// Noise never makes a shard more than ten times as fast.
  Clock::Time with_noise(Clock::Time work, std::uint64_t shard) const noexcept {
    if (options_.noise == 0) return work;
    double change = options_.noise * noise_of(options_.seed, position_, shard);
    if (change < -0.9) change = -0.9;
    const double time = static_cast<double>(work);
    return change < 0 ? work - rounded(time * -change) : later_by(work, rounded(time * change));
  }

  /// The end of work that takes `work` if the device is not slowed down.
  Clock::Time end_of(Clock::Time begin, Clock::Time work) const noexcept {
    const SimulatedDeviceOptions::SlowDown& slow = options_.slow_down;
    const Clock::Time at = slow.at.nanoseconds();
    const Clock::Time until = slow.until.nanoseconds();
    if (begin < at) {
      const Clock::Time before = at - begin;
      if (work <= before) return begin + work;
      work -= before;
      begin = at;
    }
    if (begin < until) {
      const Clock::Time slowed = rounded(static_cast<double>(work) * slow.factor);
      const Clock::Time during = until - begin;
      if (slowed <= during) return begin + slowed;
      work -= rounded(static_cast<double>(during) / slow.factor);
      begin = until;
    }
    return later_by(begin, work < 0 ? 0 : work);
  }

  [[noreturn]] void refuse_bytes_of(std::size_t bytes, std::size_t used) const {
    throw OutOfMemory(
        explain({.what = "out of memory of " + to_string(id()),
                 .expected = "at most " + std::to_string(options_.memory - used) + " bytes, which are free",
                 .found = std::to_string(bytes),
                 .advice = "use smaller batches, or a larger SimulatedDeviceOptions::memory"}));
  }

  Simulation& simulation_;
  const std::size_t position_;  // in the simulation: the noise must not depend on earlier simulations
  const SimulatedDeviceOptions options_;
  backend::Worker worker_;
  VirtualTime busy_;
  Atomic<std::uint64_t> shards_{0};
  Atomic<std::size_t> used_{0};
};

}}}  // namespace fanout::v0::detail
