// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/shard_ends.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/base/text.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/replica_error.hpp>

namespace fanout { inline namespace v0 { namespace detail {

void ShardEnds::ran_by(const Plan& plan) {
  plan_ = &plan;
  if (clock() != nullptr) clock()->tell(&ClockPart::ran_by, plan);
}

void ShardEnds::note_exception(ShardRemains& shard) noexcept {
  eventful_.store(true, MemoryOrder::relaxed);
  holds_.store(true, MemoryOrder::relaxed);
  shard.failure = std::current_exception();
  shard.released = is_release(shard.failure);
}

std::size_t ShardEnds::begin_shard(std::size_t i, std::size_t planned, const ShardRemains& shard) noexcept {
  const bool moved = shard.moved_to != ShardRemains::as_planned;
  const std::size_t device = moved ? shard.moved_to : planned;
  if (moved) eventful_.store(true, MemoryOrder::relaxed);
  if (clock() != nullptr) clock()->tell(&ClockPart::shard_begins, i, device);
  return device;
}

void ShardEnds::forward_begins(std::size_t i) noexcept {
  if (clock() != nullptr) clock()->tell(&ClockPart::forward_begins, i);
}

void ShardEnds::forward_returned(std::size_t i) noexcept {
  if (clock() != nullptr) clock()->tell(&ClockPart::forward_returned, i);
}

void ShardEnds::note_end(std::size_t i, ShardRemains& shard) noexcept {
  if (clock() != nullptr) clock()->tell(&ClockPart::shard_ended, i, shard.failure != nullptr);
  state_.rendezvous.end(i, shard.failure);
  if (state_.deadline != Clock::never) shard.lateness.end(Clock::now() <= state_.deadline);
}

/// Shards that run on other devices than planned: the deal, if there is one, and the plan as it was run.
struct ShardEnds::MovedShards : Pooled {
  TypedCall call;
  std::optional<Deal> deal;
  Plan as_run;
};

void ShardEnds::begin_deal(ForkJoin& shards, const DeviceTable& devices, const TypedCall& call) {
  if (moved_ == nullptr) moved_ = make_pooled<MovedShards>();
  moved_->call = call;
  const BlockRunner runner{.of = this,
                           .run =
                               [](const void* of, std::size_t block, std::size_t device) noexcept {
                                 return static_cast<const ShardEnds*>(of)->moved_->call.run(block, device);
                               },
                           .tell_late = [](void* of) noexcept { static_cast<ShardEnds*>(of)->tell_late(); }};
  Deal& deal = moved_->deal.emplace(state_.plan, devices, runner);
  if (state_.plan.runs_in_turns() && recovery() != nullptr) {
    const std::uint64_t shape = call.shape();
    for (std::size_t i = 0; i < devices.size(); ++i) deal.limit(i, recovery()->limits().most(shape, i));
  }
  shards.run_instead(deal.dealers(), deal);
}

void ShardEnds::end_deal() {
  if (moved_->deal) ran_by(moved_->deal->as_run());
}

void ShardEnds::release_moved() noexcept {
  delete moved_;
  moved_ = nullptr;
}

void ShardEnds::tell_late_shards() noexcept {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!remains(i).lateness.look() || std::exchange(remains(i).told_late, true)) continue;
    if (state_.settings.late_sink == nullptr) continue;
    try {
      (*state_.settings.late_sink)(late_shard(i));
    } catch (...) {  // an exception of the sink must not break the call
    }
  }
}

void ShardEnds::say_why_not_shrunk(const OutOfMemory& error) const {
  throw OutOfMemory(Text() << error.what() << "\n  " << not_with_fewer << no_room_for_results);
}

void ShardEnds::ends_are_noted() {
  if (state_.rendezvous.notes_ends()) {
    state_.rendezvous.way_is({.transport = state_.settings.collectives,
                              .devices = devices(),
                              .plan = &state_.plan,
                              .processes = state_.processes,
                              .first_shard = state_.place->first_shard});
  }
  if (clock() != nullptr) clock()->tell(&ClockPart::plan_is, state_.plan, state_.number);
  if (clock() != nullptr || has_deadline()) eventful_.store(true, MemoryOrder::relaxed);
}

SmallVector<LateShard> ShardEnds::late_shards() const {
  SmallVector<LateShard> late;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_late(i)) late.push_back(late_shard(i));
  }
  return late;
}

Plan ShardEnds::plan_in_time() const {
  Plan in_time;
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_late(i)) continue;
    const std::size_t begin = in_time.rows();
    in_time.add({.rows = {begin, begin + plan()[i].rows.size()}, .device = plan()[i].device});
  }
  return in_time;
}

void ShardEnds::throw_late_shards(KeepResults& keep, void* outputs) {
  SmallVector<LateShard> late = late_shards();
  if (late.size() == 0) return;
  Timeout timeout(std::move(late), size(), state_.settings.deadline);
  try {
    const Plan in_time = plan_in_time();
    if (in_time.size() != 0) keep(outputs, in_time, timeout);
  } catch (...) {  // no results then: the caller must learn of the Timeout
  }
  throw timeout;
}

LateShard ShardEnds::late_shard(std::size_t i) const noexcept {
  return {.shard = state_.place->first_shard + i,
          .device = devices()[plan()[i].device],
          .rows = state_.place->in_batch(plan()[i].rows)};
}

bool ShardEnds::check_events(const TypedCall& call) {
  if (moved_ != nullptr) (this->*state_.settings.deals->end)();
  tell_late();
  for (std::size_t i = 0; i < size(); ++i) {
    if (remains(i).completion) wait_for_device(remains(i));
  }
  state_.rendezvous.settle();  // or a failure found meanwhile would release a shard whose culprit is not listed
  for (std::size_t i = 0; i < size(); ++i) note_failed_collective(i);
  if (recovery() != nullptr && !(this->*state_.settings.recovers->recover)(call)) {
    if (clock() != nullptr) clock()->tell(&ClockPart::fails_and_begins);
    return false;
  }
  if (clock() != nullptr) clock()->tell(&ClockPart::all_ended);
  throw_failures(call);
  return true;
}

bool ShardEnds::recover(const TypedCall& call) {
  if (state_.settings.retries > 0) {
    run_again(call, call.refusal(Again::on_other_devices) == nullptr ? state_.settings.retries : 0);
    tell_late();
  }
  return call.refusal(Again::with_fewer_rows) != nullptr || !state_.settings.shrinks || !note_limits(call);
}

void ShardEnds::run_again(const TypedCall& call, int most) {
  for (int tries = 0;; ++tries) {
    bool failed = false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!remains(i).failed_with<DeviceError>()) continue;
      recovery()->note_failure(plan()[i].device);
      failed = true;
    }
    if (!failed || tries == most) return;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!remains(i).failed_with<DeviceError>()) continue;
      const std::size_t device = recovery()->health().other_than(plan()[i].device, i);
      if (moved_ == nullptr) moved_ = make_pooled<MovedShards>();
      moved_->as_run = Plan(size(), [&](std::size_t at) {
        return at == i ? Shard{.rows = plan()[at].rows, .device = device} : plan()[at];
      });
      ran_by(moved_->as_run);
      if (clock() != nullptr) clock()->shard_runs_again();
      call.renew(i);
      call.run(i, device);
      if (remains(i).completion) wait_for_device(remains(i));
    }
  }
}

bool ShardEnds::note_limits(const TypedCall& call) {
  if (state_.settings.ranks != nullptr) return false;
  struct Device {
    std::size_t shards = 0;
    std::size_t too_many = 0;  // rows, in one shard
  };
  InlineArray<Device> devices(recovery()->health().devices());
  bool fits_smaller = false;
  bool failed_otherwise = false;
  for (std::size_t i = 0; i < size(); ++i) {
    const Shard& shard = plan()[i];
    Device& device = devices[shard.device];
    ++device.shards;
    if (remains(i).failure == nullptr || remains(i).released) continue;
    if (!remains(i).failed_with<OutOfMemory>()) {
      failed_otherwise = true;
    } else if (!remains(i).results_do_not_fit && shard.rows.size() > device.too_many) {
      device.too_many = shard.rows.size();
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t too_many = devices[i].too_many;
    // Shards that run at the same time share the memory: first they run in turns.
    const bool had_all = devices[i].shards == 1 || state_.plan.runs_in_turns();
    const std::size_t fewer = had_all ? too_many / 2 : too_many;
    if (fewer == 0) continue;
    fits_smaller = true;
    // Above the limit, the shard was planned for another device, or before the limit was learnt.
    const std::uint64_t shape = call.shape();
    if (too_many <= recovery()->limits().most(shape, i)) recovery()->note_limit(shape, i, fewer);
  }
  if (!fits_smaller && state_.outputs.have_failed()) note_results(call);
  return fits_smaller && !failed_otherwise;
}

void ShardEnds::note_results(const TypedCall& call) {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!(devices()[plan()[i].device] == state_.target.space.owner)) continue;
    if (!remains(i).failed_with<OutOfMemory>()) continue;
    remains(i).results_do_not_fit = true;
    recovery()->forget_limit(call.shape(), plan()[i].device);
  }
}

void ShardEnds::wait_for_device(ShardRemains& shard) noexcept {
  try {
    shard.completion.wait();
  } catch (...) {
    shard.failure = std::current_exception();
    shard.failed_in_forward = true;
  }
}

void ShardEnds::note_failed_collective(std::size_t i) noexcept {
  ShardRemains& shard = remains(i);
  if (shard.failure != nullptr && !shard.released) return;
  const std::exception_ptr failure = state_.rendezvous.failure(i);
  if (failure == nullptr) return;
  const bool released = is_release(failure);
  if (shard.failure != nullptr && released) return;
  shard.failure = failure;
  shard.failed_in_forward = true;
  shard.released = released;
}

bool ShardEnds::is_release(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const CommunicatorAbandoned&) {
    return true;
  } catch (const RanksLate&) {
    return true;
  } catch (...) {
    return false;
  }
}

void ShardEnds::throw_failures(const TypedCall& call) const {
  std::vector<Failure> failures;
  std::string note;
  bool all_released = true;  // no shard failed by itself
  for (std::size_t i = 0; i < size(); ++i) {
    all_released = all_released && (remains(i).failure == nullptr || remains(i).released);
  }
  const RanksPart* const ranked = state_.settings.ranked;
  for (std::size_t i = 0; i < size() && all_released && ranked != nullptr; ++i) {
    if (remains(i).failure != nullptr) ranked->throw_if_late(remains(i).failure);
  }
  for (std::size_t i = 0; i < size(); ++i) {
    const ShardRemains& shard = remains(i);
    if (shard.failure == nullptr || (shard.released && !all_released)) continue;
    const RecoveryPart* const recovers = state_.settings.recovers;
    const std::string reason = recovers == nullptr ? std::string() : (this->*recovers->why_not_again)(call, i);
    if (!shard.failed_in_forward && reason.empty()) std::rethrow_exception(shard.failure);
    if (!reason.empty()) note = reason;
    const Shard& planned = plan()[i];
    failures.push_back({.shard = state_.place->first_shard + i,
                        .device = devices()[planned.device],
                        .rows = state_.place->in_batch(planned.rows),
                        .exception = shard.failure});
  }
  if (failures.size() == 1 && state_.settings.rethrow_single) std::rethrow_exception(failures.front().exception);
  if (failures.empty()) return;
  throw ReplicaError(std::move(failures), size() + state_.place->other_shards, note);
}

std::string ShardEnds::why_not_again(const TypedCall& call, std::size_t i) const {
  const ShardRemains& shard = remains(i);
  const auto known = [this](const char* why) noexcept {
    if (why != nullptr || recovery() != nullptr) return why;
    return "since the call was asynchronous, and waited for calls that change the model";
  };
  if (state_.settings.retries > 0 && shard.failed_with<DeviceError>()) {
    const char* const why = known(call.refusal(Again::on_other_devices));
    if (why == nullptr) return {};
    return Text() << "not run again on another device, " << why;
  }
  if (!state_.settings.shrinks || !shard.failed_with<OutOfMemory>()) return {};
  const char* why = known(call.refusal(Again::with_fewer_rows));
  if (why == nullptr && state_.settings.ranks != nullptr) why = "since several ranks make the call";
  if (why == nullptr && shard.results_do_not_fit) why = no_room_for_results;
  if (why == nullptr && plan()[i].rows.size() < 2) why = call.refusal(Again::with_single_rows);
  if (why == nullptr) return {};
  return Text() << not_with_fewer << why;
}

}}}  // namespace fanout::v0::detail
