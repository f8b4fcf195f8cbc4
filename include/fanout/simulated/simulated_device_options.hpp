// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/duration.hpp>

namespace fanout { inline namespace v0 {

/// What one device of simulated_devices() is like. All times are virtual.
struct SimulatedDeviceOptions {
  /// A time in which the device computes more slowly.
  struct SlowDown {
    Duration at = {};                      ///< when it begins
    Duration until = Duration::forever();  ///< when it ends
    double factor = 1;                     ///< 4: a shard takes four times as long
  };

  double rows_per_second = 1e6;        ///< how fast shards are computed. Infinity is allowed
  Duration launch = {};                ///< what each shard takes besides its rows
  double bandwidth = __builtin_inf();  ///< of the link between the host and the device, in bytes per second
  Duration latency = {};               ///< what each copy over the link takes besides its bytes
  std::size_t memory = SIZE_MAX;       ///< in bytes. Beyond that, OutOfMemory is thrown
  std::size_t fail_at = 0;             ///< the shard, counted from 1, that throws a DeviceError. 0: none
  std::size_t failures = 1;            ///< how many shards fail from there on. SIZE_MAX: the device is lost
  SlowDown slow_down = {};             ///< of shards; copies take as long as ever
  double noise = 0;                    ///< the standard deviation of a shard's time, relative to that time
  std::uint64_t seed = 0;              ///< of the noise, which differs between the devices of a simulation
};

}}  // namespace fanout::v0
