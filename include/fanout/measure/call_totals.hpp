// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/memory/memory_space.hpp>
#include <fanout/plan/call_times.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The sums of the times of several calls on one device, in nanoseconds.
struct DeviceTotals {
  DeviceId id = host_memory.owner;
  std::uint64_t calls = 0;  ///< in which it had a shard
  std::uint64_t shards = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::int64_t scatter = 0;
  std::int64_t forward = 0;
  std::int64_t wait = 0;  ///< from the return of `forward` until its work on the device was done
};

/// The sums of the times of several calls of one model, in nanoseconds.
struct CallTotals {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::size_t last_rows = 0;  ///< of the latest call that had rows
  std::int64_t plan = 0;
  std::int64_t shards = 0;  ///< from the plan until all shards had ended
  std::int64_t gather = 0;
  std::int64_t host_useful = 0;  ///< in which calling threads ran shards of host devices
  std::vector<DeviceTotals> devices;

  /// Lists the devices of the model, if they are not listed.
  FANOUT_INLINE void devices_are(const DeviceId* ids, std::size_t count);

  /// Adds a call. A failed one is only counted.
  FANOUT_INLINE void add(const CallTimes& call);

 private:
  /// Counts the call for a device that had a shard. Shards of a host device may run at the same time, if a thread that
  /// waits for the call runs some of them. Then the device worked no longer than the call.
  FANOUT_INLINE void add(std::size_t device, const CallTimes& call);

  FANOUT_INLINE void add(const Shard& shard, const ShardTimes& times, std::uint32_t caller);
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/measure/call_totals.ipp>
#endif
