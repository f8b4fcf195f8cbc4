// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/replica_error.hpp>
#include <fanout/call/shard_slot.hpp>
#include <fanout/measure/call_clock.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// For calls whose shards never run again, and which are not made again: see ShardEnds::check_ends().
struct NeverAgain {
  static const char* refusal() noexcept { return nullptr; }
  static void shards_ended() noexcept {}
  void operator()(std::size_t, std::size_t) const noexcept {}
  static std::uint64_t shape() noexcept { return 0; }
};

/// How the shards of one call end: with exceptions, late, or with pending device work. All calls share this code,
/// whatever their shards return. Borrows the plan, the settings and the devices of the set; a shard names its device by
/// position.
///
/// `Remains` is always ShardRemains. As a template, this costs nothing to compile in a file that calls no model.
template <class Remains>
class ShardEnds {
 public:
  ShardEnds(const Plan& plan, const CallSettings& settings, const CallStart& start, const DeviceId* devices,
            bool shards_may_meet)
      : state_(plan, settings, start, shards_may_meet), plan_(&plan), devices_(devices) {
    if (shards_may_meet) {
      state_.rendezvous.way_is({.transport = settings.collectives,
                                .devices = devices,
                                .plan = &plan,
                                .processes = start.rendezvous,
                                .first_shard = start.place->first_shard});
    }
  }

  CallState& state() noexcept { return state_; }
  /// Each shard with the device that runs it.
  const Plan& plan() const noexcept { return *plan_; }

  /// Called when all shards have ended, if they ran on other devices than planned. Borrows the plan.
  void ran_by(const Plan& plan) {
    plan_ = &plan;
    if (clock() != nullptr) clock()->ran_by(plan);
  }

  /// Call this if the shard has not thrown. Notes if work remains for when all have ended.
  void note_success(const Remains& shard) noexcept {
    if (shard.completion) eventful_.store(true, MemoryOrder::relaxed);
    if (shard.completion || !shard.scratch.empty()) holds_.store(true, MemoryOrder::relaxed);
  }

  /// Call this in the `catch` block of what the shard has thrown.
  [[gnu::cold, gnu::noinline]] void note_exception(Remains& shard) noexcept {
    eventful_.store(true, MemoryOrder::relaxed);
    holds_.store(true, MemoryOrder::relaxed);
    shard.failure = std::current_exception();
    shard.released = is_release(shard.failure);
  }

  /// Call this when the shard begins, unless nothing notes that. Returns the device that runs it.
  [[gnu::cold, gnu::noinline]] std::size_t begin_shard(std::size_t i, std::size_t planned,
                                                       const Remains& shard) noexcept {
    const bool moved = shard.moved_to != Remains::as_planned;
    const std::size_t device = moved ? shard.moved_to : planned;
    if (moved) eventful_.store(true, MemoryOrder::relaxed);
    if (clock() != nullptr) clock()->shard_begins(i, device);
    return device;
  }

  /// Call this when the shard has its inputs, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] void forward_begins(std::size_t i) noexcept {
    if (clock() != nullptr) (*clock())[i].forward_begins();
  }
  /// Call this when `forward` has returned, if work on the device may go on, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] void forward_returned(std::size_t i) noexcept {
    if (clock() != nullptr) (*clock())[i].forward_returned();
  }

  /// Call this when the shard has ended, unless nothing notes the ends of shards.
  void note_end(std::size_t i, Remains& shard) noexcept {
    if (clock() != nullptr) clock()->shard_ended(i, shard.failure != nullptr);
    state_.rendezvous.end(i, shard.failure);
    if (state_.deadline != Clock::never) shard.lateness.end(Clock::now() <= state_.deadline);
  }

  /// Tells shards that wait for each other how to take back shards that no device has started.
  void tasks_are(const CallRendezvous::Tasks& tasks) noexcept { state_.rendezvous.tasks_are(tasks); }

  /// At or after the deadline: reports each late shard to the sink, once. Must be called by one thread at a time.
  [[gnu::cold, gnu::noinline]] void tell_late() noexcept {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!remains(i).lateness.look() || detail::exchange(remains(i).told_late, true)) continue;
      if (state_.settings.late_sink == nullptr) continue;
      try {
        (*state_.settings.late_sink)(late_shard(i));
      } catch (...) {  // an exception of the sink must not break the call
      }
    }
  }

 protected:
  /// The remains of all shards lie at this distance, in bytes.
  void remains_are(Remains& first, std::size_t stride) noexcept {
    first_remains_ = &first;
    stride_ = stride;
  }

  std::size_t size() const noexcept { return state_.plan.size(); }
  bool has_deadline() const noexcept { return state_.deadline != Clock::never; }
  /// True if something besides values is to be destroyed.
  bool holds() const noexcept { return holds_.load(MemoryOrder::relaxed); }
  const DeviceId* devices() const noexcept { return devices_; }

  /// Call this when all shards have ended. Waits for pending device work. Then runs shards again whose devices failed,
  /// if the settings of the call say so. Throws the exceptions of the shards, or LimitLearnt if the call is to be made
  /// again.
  ///
  /// `again(i, device)` runs a shard again. `again.refusal()` is the reason if shards of this call cannot run again, as
  /// the end of a sentence, null if they can. `again.shards_ended()` is called first, if a shard ran on another device
  /// than planned.
  template <class Again = NeverAgain>
  void check_ends(Again again = {}) {
    if (eventful_.load(MemoryOrder::relaxed)) check_events(again);
  }

  /// Call this before shards run, if begin_shard() and note_end() are called. Throws std::bad_alloc.
  void ends_are_noted() {
    if (clock() != nullptr) clock()->plan_is(state_.plan, state_.number);
    if (clock() != nullptr || has_deadline()) eventful_.store(true, MemoryOrder::relaxed);
  }

  bool is_late(std::size_t i) const noexcept { return remains(i).lateness.is_late(); }

  SmallVector<LateShard> late_shards() const {
    SmallVector<LateShard> late;
    for (std::size_t i = 0; i < size(); ++i) {
      if (is_late(i)) late.push_back(late_shard(i));
    }
    return late;
  }

  /// The plan of the shards that were in time: their rows, without gaps.
  Plan plan_in_time() const {
    Plan in_time;
    for (std::size_t i = 0; i < size(); ++i) {
      if (is_late(i)) continue;
      const std::size_t begin = in_time.rows();
      in_time.add({.rows = {begin, begin + plan()[i].rows.size()}, .device = plan()[i].device});
    }
    return in_time;
  }

 private:
  CallClock<typename Remains::Times>* clock() const noexcept { return state_.clock; }
  Recovery<typename Remains::Count>* recovery() const noexcept { return state_.settings.recovery; }

  Remains& remains(std::size_t i) const noexcept {
    return *reinterpret_cast<Remains*>(reinterpret_cast<std::byte*>(first_remains_) + i * stride_);
  }

  LateShard late_shard(std::size_t i) const noexcept {
    return {.shard = state_.place.first_shard + i,
            .device = devices_[plan()[i].device],
            .rows = state_.place.in_batch(plan()[i].rows)};
  }

  template <class Again>
  [[gnu::cold, gnu::noinline]] void check_events(Again again) {
    again.shards_ended();
    if (has_deadline()) tell_late();
    for (std::size_t i = 0; i < size(); ++i) {
      if (remains(i).completion) wait_for_device(remains(i));
    }
    state_.rendezvous.settle();  // or a failure found meanwhile would release a shard whose culprit is not listed
    for (std::size_t i = 0; i < size(); ++i) note_failed_collective(i);
    const char* const refusal = again.refusal();
    if (recovery() != nullptr && state_.settings.retries > 0) run_again(again, refusal == nullptr);
    if (clock() != nullptr) clock()->all_ended();
    if (refusal == nullptr && recovery() != nullptr && state_.settings.shrinks) note_limits(again);
    throw_failures(refusal);
  }

  /// Counts each failure of a device. If shards `may` run again, runs those of failed devices.
  template <class Again>
  void run_again(const Again& again, bool may) {
    const int most = may ? state_.settings.retries : 0;
    for (int tries = 0; tries <= most; ++tries) {
      for (std::size_t i = 0; i < size(); ++i) {
        if (!is_failure<DeviceError>(remains(i).failure)) continue;
        const std::size_t failed_on = plan()[i].device;
        recovery()->note_failure(failed_on);
        if (tries == most) continue;
        again(i, recovery()->health().other_than(failed_on, i));
        if (remains(i).completion) wait_for_device(remains(i));
      }
    }
  }

  /// Notes the shards that ran out of memory. Throws LimitLearnt if there are any, unless other processes make the
  /// call, too.
  template <class Again>
  void note_limits(const Again& again) {
    if (state_.settings.ranks != nullptr) return;
    bool learnt = false;
    for (std::size_t i = 0; i < size(); ++i) {
      if (!is_failure<OutOfMemory>(remains(i).failure)) continue;
      learnt = recovery()->note_limit(again.shape(), plan()[i].device, plan()[i].rows.size()) || learnt;
    }
    if (learnt) throw LimitLearnt();
  }

  static void wait_for_device(Remains& shard) noexcept {
    try {
      shard.completion.wait();
    } catch (...) {
      shard.failure = std::current_exception();
      shard.failed_in_forward = true;
    }
  }

  /// The failure of a shard's own device replaces that of a shard which was only released.
  void note_failed_collective(std::size_t i) noexcept {
    Remains& shard = remains(i);
    if (shard.failure != nullptr && !shard.released) return;
    const std::exception_ptr failure = state_.rendezvous.failure(i);
    if (failure == nullptr) return;
    const bool released = is_release(failure);
    if (shard.failure != nullptr && released) return;
    shard.failure = failure;
    shard.failed_in_forward = true;
    shard.released = released;
  }

  /// True if the shard has not failed by itself: it waited for one that failed, or is late.
  static bool is_release(const std::exception_ptr& failure) noexcept {
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

  template <class E>
  static bool is_failure(const std::exception_ptr& failure) noexcept {
    if (failure == nullptr) return false;
    try {
      std::rethrow_exception(failure);
    } catch (const E&) {
      return true;
    } catch (...) {
      return false;
    }
  }

  /// Throws the Timeout of a shard that waited in a collective for ranks that were late.
  static void throw_if_ranks_late(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const RanksLate& late) {
      throw Timeout(late);  // of another type: a call around this one lists it like any exception of its forward
    } catch (...) {
    }
  }

  /// `refusal` is why nothing runs again, for the error of a device.
  void throw_failures(const char* refusal) const {
    std::vector<Failure> failures;
    const char* what = nullptr;
    const char* why = refusal;
    bool all_released = true;  // no shard failed by itself
    for (std::size_t i = 0; i < size(); ++i) {
      all_released = all_released && (remains(i).failure == nullptr || remains(i).released);
    }
    for (std::size_t i = 0; i < size() && all_released; ++i) {
      if (remains(i).failure != nullptr) throw_if_ranks_late(remains(i).failure);
    }
    for (std::size_t i = 0; i < size(); ++i) {
      const Remains& shard = remains(i);
      if (shard.failure == nullptr || (shard.released && !all_released)) continue;
      if (!shard.failed_in_forward) std::rethrow_exception(shard.failure);
      if (refusal != nullptr && state_.settings.retries > 0 && is_failure<DeviceError>(shard.failure)) {
        what = "not run again on another device, ";
      }
      if (state_.settings.shrinks && is_failure<OutOfMemory>(shard.failure)) {
        if (why == nullptr && state_.settings.ranks != nullptr) why = "since several ranks make the call";
        if (why == nullptr && plan()[i].rows.size() < 2) why = "since a single row does not fit";
        what = why == nullptr ? nullptr : "not made again with fewer rows at a time, ";
      }
      const Shard& planned = plan()[i];
      failures.push_back({.shard = state_.place.first_shard + i,
                          .device = devices_[planned.device],
                          .rows = state_.place.in_batch(planned.rows),
                          .exception = shard.failure});
    }
    if (failures.size() == 1 && state_.settings.rethrow_single) std::rethrow_exception(failures.front().exception);
    if (failures.empty()) return;
    throw ReplicaError(std::move(failures), size() + state_.place.other_shards,
                       what == nullptr ? std::string() : std::string(what) + why);
  }

  CallState state_;
  const Plan* plan_;
  const DeviceId* devices_;
  Remains* first_remains_ = nullptr;
  std::size_t stride_ = 0;
  // A shard failed, has pending device work or ran elsewhere, or the call is measured or has a deadline.
  Atomic<bool> eventful_{false};
  Atomic<bool> holds_{false};  // a slot holds something besides its value
};

}}}  // namespace fanout::v0::detail
