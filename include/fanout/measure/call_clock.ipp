// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/measure/call_clock.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>

namespace fanout { inline namespace v0 { namespace detail {

void ShardClock::begin(const MeasuredDevice& device) noexcept {
  device_ = &device;
  times_ = {};  // an earlier run of the shard may have failed
  returned_ = false;
  outer_shard_ = std::exchange(measured_shard(), shard_);
  times_.thread = thread_number();
  outer_ = std::exchange(transfer_log(), static_cast<TransferLog*>(this));
  range_.begin("scatter to ", model_, shard_.shard);
  times_.began = elapsed();
}

void ShardClock::forward_begins() noexcept {
  times_.forward = elapsed();
  range_.begin("forward of ", model_, shard_.shard);
}

void ShardClock::forward_returned() noexcept {
  times_.returned = elapsed();
  returned_ = true;
  range_.end();
}

void ShardClock::end(bool failed) noexcept {
  times_.ended = elapsed();
  if (!returned_) times_.returned = times_.ended;
  times_.failed = failed;
  range_.end();
  transfer_log() = outer_;
  measured_shard() = outer_shard_;
}

CallClock::CallClock(const MeasuredStart& start)
    : observer_(start.observer),
      id_(measured_calls.fetch_add(1, MemoryOrder::relaxed) + 1),
      main_(start.devices[0].clock),
      ids_(start.devices.size(), [&](std::size_t i) { return start.devices.ids()[i]; }),
      devices_(start.devices.size(),
               [&](std::size_t i) {
                 const DeviceEntry& device = start.devices[i];
                 return MeasuredDevice{device.clock, device.memory.space, begin_on(device.clock)};
               }),
      times_{.devices = ids_.data(),
             .device_count = start.devices.size(),
             .began = began_,
             .thread = thread_number(),
             .id = id_,
             .outer = measured_shard().call,
             .outer_shard = measured_shard().shard,
             .model = start.model,
             .step = start.step,
             .asynchronous = start.asynchronous,
             .own_clock = main_.is_own()} {
  if (!start.asynchronous) range_.begin("call of ", start.model, id_);
  if (start.asynchronous && observer_ != nullptr) observer_->retain();
}

CallClock* make_call_clock(const MeasuredStart& start) noexcept {
  try {
    return make_pooled<CallClock>(start);
  } catch (...) {  // an error here would be one that other processes of the call do not learn of
    return nullptr;
  }
}

void CallClock::plan_is(const Plan& plan, std::uint32_t number) {
  clocks_.emplace(shards_.emplace(plan.size()), id_, times_.model);
  running_.store(plan.size(), MemoryOrder::relaxed);
  rows_done_.store(0, MemoryOrder::relaxed);
  failed_.store(false, MemoryOrder::relaxed);
  plan_ = plan;
  times_.plan = &plan_;
  times_.shards = shards_->data();
  times_.number = number;
  times_.planned = elapsed();
}

void CallClock::shard_ended(std::size_t i, bool failed) noexcept {
  clocks()[i].end(failed);
  if (failed) {
    failed_.store(true, MemoryOrder::relaxed);
  } else if (observer_ != nullptr) {
    const std::size_t own = (*times_.plan)[i].rows.size();
    observer_->shard_ended(
        {.rows_done = rows_done_.fetch_add(own, MemoryOrder::relaxed) + own, .rows = times_.plan->rows()});
  }
  running_.fetch_sub(1, MemoryOrder::acq_rel);
}

void CallClock::fails_and_begins() noexcept {
  join(elapsed());
  times_.ended = times_.joined;
  tell_observers(true);
  times_.id = id_ = measured_calls.fetch_add(1, MemoryOrder::relaxed) + 1;
  times_.began = began_ = main_.now();
  for (MeasuredDevice& device : devices_) device.call_began = begin_on(device.clock);
}

void CallClock::all_ended() noexcept {
  if (times_.asynchronous) return;
  join(elapsed());
  gather_begins();
}

void CallClock::result_is_asked_for() noexcept {
  if (!has_run()) return;
  join(0);
  const std::int64_t now = elapsed();
  if (now > times_.joined) times_.idle = now - times_.joined;
  thrown_ = std::uncaught_exceptions();
  gather_begins();
}

void CallClock::end() noexcept {
  tell_end();
  if (times_.asynchronous && observer_ != nullptr) observer_->release();
  delete this;
}

void CallClock::tell_end() noexcept {
  range_.end();
  if (times_.plan == nullptr) return;
  if (times_.gatherer != 0) {
    transfer_log() = outer_;
    times_.ended = elapsed();
  } else if (times_.asynchronous) {
    if (!has_run()) return;
    join(0);
  } else {
    join(elapsed());
  }
  const std::int64_t gathers_from = times_.joined + times_.idle;
  if (times_.ended < gathers_from) times_.ended = gathers_from;  // which another clock said
  const bool is_dropped = times_.asynchronous && times_.gatherer == 0;
  tell_observers(is_dropped ? failed_.load(MemoryOrder::relaxed) : std::uncaught_exceptions() > thrown_);
}

void CallClock::join(std::int64_t at_least) noexcept {
  times_.joined = at_least;
  for (const CallTimes::Shard& shard : *shards_) {  // its clock may be another one
    if (shard.ended > times_.joined) times_.joined = shard.ended;
  }
}

void CallClock::gather_begins() noexcept {
  times_.gatherer = thread_number();
  outer_ = std::exchange(transfer_log(), static_cast<TransferLog*>(this));
}

void CallClock::tell_observers(bool failed) noexcept {
  times_.failed = failed;
  if (observer_ != nullptr) observer_->ended(times_);
  if (process_observer.exists()) process_observer.ended(times_);
}

}}}  // namespace fanout::v0::detail
