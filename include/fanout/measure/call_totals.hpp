// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fanout/base/device_id.hpp>
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
/// `Device` is always DeviceTotals. As a template, this costs nothing to compile in a file that calls no model.
template <class Device = DeviceTotals>
struct CallTotals {
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
  std::size_t last_rows = 0;  ///< of the latest call that had rows
  std::int64_t plan = 0;
  std::int64_t shards = 0;  ///< from the plan until all shards had ended
  std::int64_t gather = 0;
  std::int64_t host_useful = 0;  ///< in which calling threads ran shards of host devices
  std::vector<Device> devices;

  /// Lists the devices of the model, if they are not listed.
  void devices_are(const DeviceId* ids, std::size_t count) {
    while (devices.size() < count) devices.push_back({.id = ids[devices.size()]});
  }

  /// Adds a call. A failed one is only counted.
  void add(const CallTimes& call) {
    devices_are(call.devices, call.device_count);
    if (call.failed) {
      ++failed;
      return;
    }
    ++calls;
    if (call.plan->rows() != 0) last_rows = call.plan->rows();
    plan += call.planned;
    shards += call.joined - call.planned;
    gather += call.ended - call.joined - call.idle;
    for (std::size_t i = 0; i < call.plan->size(); ++i) add((*call.plan)[i], call.shards[i], call.thread);
    for (std::size_t device = 0; device < devices.size(); ++device) add(device, call);
  }

 private:
  /// Counts the call for a device that had a shard. Shards of a host device may run at the same time, if a thread that
  /// waits for the call runs some of them. Then the device worked no longer than the call.
  void add(std::size_t device, const CallTimes& call) {
    std::int64_t useful = 0;
    bool has_shard = false;
    for (std::size_t i = 0; i < call.plan->size(); ++i) {
      if ((*call.plan)[i].device != device) continue;
      useful += call.shards[i].ended - call.shards[i].forward;
      has_shard = true;
    }
    if (has_shard) ++devices[device].calls;
    const std::int64_t duration = call.joined - call.planned;
    if (useful > duration) devices[device].forward -= useful - duration;
  }

  void add(const Shard& shard, const ShardTimes& times, std::uint32_t caller) {
    Device& device = devices[shard.device];
    ++device.shards;
    device.rows += shard.rows.size();
    device.bytes_in += times.bytes_in;
    device.bytes_out += times.bytes_out;
    device.scatter += times.forward - times.began;
    device.forward += times.returned - times.forward;
    device.wait += times.ended - times.returned;
    if (times.thread == caller && device.id.kind == host_memory.owner.kind) host_useful += times.ended - times.forward;
  }
};

}}}  // namespace fanout::v0::detail
