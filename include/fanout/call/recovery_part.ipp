// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/recovery_part.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/moved_shards.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/measure/call_clock.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 { namespace detail {

inline constexpr const char* not_with_fewer = "not made again with fewer rows at a time, ";
inline constexpr const char* no_room_for_results = "since the results do not fit into the memory for them";

Owned<Recovery> make_recovery(std::size_t devices) {
  return {new Recovery(devices), [](Recovery* made) noexcept { delete made; }};
}

Owned<LimitedPlans> limit_plan(const CallSettings& settings, Plan& plan, std::uint64_t shape) {
  Owned<LimitedPlans> limits(new LimitedPlans{.planned = plan, .shape = shape},
                             [](LimitedPlans* made) noexcept { delete made; });
  plan = settings.within(*limits);
  return limits;
}

/// Counts the shards whose devices have failed, and the failure of each of these devices.
inline std::size_t count_failed(CallFrame& frame) noexcept {
  std::size_t failed = 0;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    if (!frame.remains(i).failed_with<DeviceError>()) continue;
    frame.settings.recovery->note_failure(frame.as_run()[i].device);
    ++failed;
  }
  return failed;
}

inline void run_again_on(CallFrame& frame, const TypedCall& call, std::size_t i, std::size_t device) {
  MovedShards& moved = MovedShards::of(frame);
  const Plan& before = frame.as_run();
  moved.as_run = Plan(frame.size(), [&](std::size_t at) {
    return at == i ? Shard{.rows = before[at].rows, .device = device} : before[at];
  });
  frame.ran_by(moved.as_run);
  if (frame.clock != nullptr) frame.clock->shard_runs_again();
  call.renew(i);
  call.run(i, device);
  if (frame.remains(i).completion) CallFrame::wait_for_device(frame.remains(i));
}

/// Counts each failure of a device. Runs the shards of failed devices again, at most `most` times.
inline void run_again(CallFrame& frame, const TypedCall& call, int most) {
  for (int tries = 0; count_failed(frame) != 0 && tries < most; ++tries) {
    for (std::size_t i = 0; i < frame.size(); ++i) {
      if (!frame.remains(i).failed_with<DeviceError>()) continue;
      run_again_on(frame, call, i, frame.settings.recovery->health().other_than(frame.as_run()[i].device, i));
    }
  }
}

/// Called if the results do not fit into the memory of the device that keeps all of them. Fewer rows at a time do not
/// help there, so the device's limit is forgotten.
inline void note_results(CallFrame& frame, const TypedCall& call) {
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const std::size_t device = frame.as_run()[i].device;
    ShardRemains& shard = frame.remains(i);
    if (!(frame.devices[device] == frame.target.space.owner) || !shard.failed_with<OutOfMemory>()) continue;
    shard.results_do_not_fit = true;
    frame.settings.recovery->forget_limit(call.shape(), device);
  }
}

/// Notes how many rows fit into the memory of each device that had too little. Returns true if the call must be made
/// again: only memory was missing. Does nothing if other processes make the call, too.
inline bool note_limits(CallFrame& frame, const TypedCall& call) {
  if (frame.settings.ranks != nullptr) return false;
  Recovery& recovery = *frame.settings.recovery;
  struct Device {
    std::size_t shards = 0;
    std::size_t too_many = 0;  // rows, in one shard
  };
  InlineArray<Device> devices(recovery.health().devices());
  bool fits_smaller = false;
  bool failed_otherwise = false;
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const std::size_t rows = frame.as_run()[i].rows.size();
    Device& device = devices[frame.as_run()[i].device];
    ++device.shards;
    const ShardRemains& shard = frame.remains(i);
    if (shard.failure == nullptr || shard.released) continue;
    if (!shard.failed_with<OutOfMemory>()) {
      failed_otherwise = true;
    } else if (!shard.results_do_not_fit && rows > device.too_many) {
      device.too_many = rows;
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t too_many = devices[i].too_many;
    // Shards that run at the same time share the memory: first they run in turns.
    const bool had_all = devices[i].shards == 1 || frame.plan.runs_in_turns();
    const std::size_t fewer = had_all ? too_many / 2 : too_many;
    if (fewer == 0) continue;
    fits_smaller = true;
    // Above the limit, the shard was planned for another device, or before the limit was learnt.
    const std::uint64_t shape = call.shape();
    if (too_many <= recovery.limits().most(shape, i)) recovery.note_limit(shape, i, fewer);
  }
  if (!fits_smaller && frame.outputs.have_failed()) note_results(frame, call);
  return fits_smaller && !failed_otherwise;
}

bool recover(CallFrame& frame, const TypedCall& call) {
  const CallSettings& settings = frame.settings;
  if (settings.retries > 0) {
    run_again(frame, call, call.refusal(Again::on_other_devices) == nullptr ? settings.retries : 0);
    frame.tell_late();
  }
  return call.refusal(Again::with_fewer_rows) != nullptr || !settings.shrinks || !note_limits(frame, call);
}

std::string why_not_again(const CallFrame& frame, const TypedCall& call, std::size_t i) {
  const ShardRemains& shard = frame.remains(i);
  const CallSettings& settings = frame.settings;
  const auto known = [&settings](const char* why) noexcept {
    if (why != nullptr || settings.recovery != nullptr) return why;
    return "since the call was asynchronous, and waited for calls that change the model";
  };
  if (settings.retries > 0 && shard.failed_with<DeviceError>()) {
    const char* const why = known(call.refusal(Again::on_other_devices));
    if (why == nullptr) return {};
    return Text() << "not run again on another device, " << why;
  }
  if (!settings.shrinks || !shard.failed_with<OutOfMemory>()) return {};
  const char* why = known(call.refusal(Again::with_fewer_rows));
  if (why == nullptr && settings.ranks != nullptr) why = "since several ranks make the call";
  if (why == nullptr && shard.results_do_not_fit) why = no_room_for_results;
  if (why == nullptr && frame.as_run()[i].rows.size() < 2) why = call.refusal(Again::with_single_rows);
  if (why == nullptr) return {};
  return Text() << not_with_fewer << why;
}

void say_why_not_shrunk(const OutOfMemory& error) {
  throw OutOfMemory(Text() << error.what() << "\n  " << not_with_fewer << no_room_for_results);
}

}}}  // namespace fanout::v0::detail
