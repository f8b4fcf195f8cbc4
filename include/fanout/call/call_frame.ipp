// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/call/call_frame.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/error.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/replica_error.hpp>
#include <fanout/measure/call_clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// True if the shard has not failed by itself: it waited for one that failed, or is late.
inline bool is_release(const std::exception_ptr& failure) noexcept {
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

std::size_t CallFrame::begin_shard(std::size_t i, std::size_t planned, const ShardRemains& shard) noexcept {
  const bool moved = shard.moved_to != ShardRemains::as_planned;
  const std::size_t device = moved ? shard.moved_to : planned;
  if (moved) eventful_.store(true, MemoryOrder::relaxed);
  if (clock != nullptr) clock->tell(&ClockPart::shard_begins, i, device);
  return device;
}

void CallFrame::forward_begins(std::size_t i) noexcept {
  if (clock != nullptr) clock->tell(&ClockPart::forward_begins, i);
}

void CallFrame::forward_returned(std::size_t i) noexcept {
  if (clock != nullptr) clock->tell(&ClockPart::forward_returned, i);
}

void CallFrame::note_exception(ShardRemains& shard) noexcept {
  eventful_.store(true, MemoryOrder::relaxed);
  holds_.store(true, MemoryOrder::relaxed);
  shard.failure = std::current_exception();
  shard.released = is_release(shard.failure);
}

void CallFrame::note_end(std::size_t i, ShardRemains& shard) noexcept {
  if (clock != nullptr) clock->tell(&ClockPart::shard_ended, i, shard.failure != nullptr);
  rendezvous.end(i, shard.failure);
  if (has_deadline()) shard.lateness.end(Clock::now() <= deadline);
}

void CallFrame::wait_for_device(ShardRemains& shard) noexcept {
  try {
    shard.completion.wait();
  } catch (...) {
    shard.failure = std::current_exception();
    shard.failed_in_forward = true;
  }
}

void CallFrame::ran_by(const Plan& by) {
  as_run_ = &by;
  if (clock != nullptr) clock->tell(&ClockPart::ran_by, by);
}

void CallFrame::ends_are_noted() {
  if (rendezvous.notes_ends()) {
    rendezvous.way_is({.transport = settings.collectives,
                       .devices = devices,
                       .plan = &plan,
                       .processes = processes,
                       .first_shard = place->first_shard});
  }
  if (clock != nullptr) clock->tell(&ClockPart::plan_is, plan, number);
  if (clock != nullptr || has_deadline()) eventful_.store(true, MemoryOrder::relaxed);
}

void CallFrame::again() {
  const bool shards_may_meet = rendezvous.notes_ends();
  std::destroy_at(&outputs);
  std::construct_at(&outputs, target)->write_to(request.targets, request.target_count);
  std::destroy_at(&rendezvous);
  std::construct_at(&rendezvous, plan.size(), shards_may_meet);
  moved_ = {};
  as_run_ = &plan;
  eventful_.store(false, MemoryOrder::relaxed);
  holds_.store(false, MemoryOrder::relaxed);
}

bool CallFrame::check_events(const TypedCall& call) {
  if (moved_) settings.deals->end(*this);
  tell_late();
  for (std::size_t i = 0; i < size(); ++i) {
    if (remains(i).completion) wait_for_device(remains(i));
  }
  rendezvous.settle();  // or a failure found meanwhile would release a shard whose culprit is not listed
  for (std::size_t i = 0; i < size(); ++i) note_failed_collective(i);
  if (settings.recovery != nullptr && !settings.recovers->recover(*this, call)) {
    if (clock != nullptr) clock->tell(&ClockPart::fails_and_begins);
    return false;
  }
  if (clock != nullptr) clock->tell(&ClockPart::all_ended);
  throw_failures(call);
  return true;
}

void CallFrame::note_failed_collective(std::size_t i) noexcept {
  ShardRemains& shard = remains(i);
  if (shard.failure != nullptr && !shard.released) return;
  const std::exception_ptr failure = rendezvous.failure(i);
  if (failure == nullptr) return;
  const bool released = is_release(failure);
  if (shard.failure != nullptr && released) return;
  shard.failure = failure;
  shard.failed_in_forward = true;
  shard.released = released;
}

void CallFrame::throw_failures(const TypedCall& call) const {
  std::size_t failed = 0;
  std::size_t released = 0;  // these have not failed by themselves
  for (std::size_t i = 0; i < size(); ++i) {
    failed += remains(i).failure != nullptr ? 1U : 0U;
    released += remains(i).failure != nullptr && remains(i).released ? 1U : 0U;
  }
  if (failed == 0) return;
  const bool all_released = released == failed;
  for (std::size_t i = 0; i < size() && all_released && settings.ranked != nullptr; ++i) {
    if (remains(i).failure != nullptr) settings.ranked->throw_if_late(remains(i).failure);
  }
  std::vector<Failure> failures(all_released ? failed : failed - released);
  std::size_t next = 0;
  std::string note;
  for (std::size_t i = 0; i < size(); ++i) {
    const ShardRemains& shard = remains(i);
    if (shard.failure == nullptr || (shard.released && !all_released)) continue;
    const RecoveryPart* const recovers = settings.recovers;
    const std::string reason = recovers == nullptr ? std::string() : recovers->why_not_again(*this, call, i);
    if (!shard.failed_in_forward && reason.empty()) std::rethrow_exception(shard.failure);
    if (!reason.empty()) note = reason;
    const Shard& ran = as_run()[i];
    Failure& listed = failures[next++];
    listed.shard = place->first_shard + i;
    listed.device = devices[ran.device];
    listed.rows = place->in_batch(ran.rows);
    listed.exception = shard.failure;
  }
  if (failures.size() == 1 && settings.rethrow_single) std::rethrow_exception(failures.front().exception);
  throw ReplicaError(std::move(failures), size() + place->other_shards, note);
}

}}}  // namespace fanout::v0::detail
