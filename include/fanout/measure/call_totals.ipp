// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/measure/call_totals.hpp>

#include <cstddef>
#include <cstdint>

namespace fanout { inline namespace v0 { namespace detail {

void CallTotals::devices_are(const DeviceId* ids, std::size_t count) {
  while (devices.size() < count) devices.push_back({.id = ids[devices.size()]});
}

void CallTotals::add(const CallTimes& call) {
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

void CallTotals::add(std::size_t device, const CallTimes& call) {
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

void CallTotals::add(const Shard& shard, const ShardTimes& times, std::uint32_t caller) {
  DeviceTotals& device = devices[shard.device];
  ++device.shards;
  device.rows += shard.rows.size();
  device.bytes_in += times.bytes_in;
  device.bytes_out += times.bytes_out;
  device.scatter += times.forward - times.began;
  device.forward += times.returned - times.forward;
  device.wait += times.ended - times.returned;
  if (times.thread == caller && device.id.kind == host_memory.owner.kind) host_useful += times.ended - times.forward;
}

}}}  // namespace fanout::v0::detail
