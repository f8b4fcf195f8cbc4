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
#include <fanout/base/inline_array.hpp>
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

inline const char* no_reason() noexcept { return nullptr; }

/// How shards of one type of call run again: a table of functions, so that all types share the code that decides. By
/// itself, it is for calls whose shards never run again.
///
/// The refusals return reasons as the ends of sentences, or null if there is none:
///
/// 1. `refusal`: why shards cannot run again;
/// 2. `refusal_of_less`: why the call cannot be made again with fewer rows at a time;
/// 3. `refusal_of_one_row`: why not even a single row fits into the memory.
///
/// 4. `shards_ended` is called first, since shards may have run on other devices than planned.
/// 5. `run` runs a shard on a device.
/// 6. `shape` is that of the call's arguments: see batch_shape().
struct Rerun {
  const char* (*refusal)() noexcept = &no_reason;
  const char* (*refusal_of_less)() noexcept = &no_reason;
  const char* (*refusal_of_one_row)() noexcept = &no_reason;
  void (*shards_ended)(void* call) = [](void*) {};
  void (*run)(void* call, std::size_t shard, std::size_t device) = [](void*, std::size_t, std::size_t) {};
  std::uint64_t (*shape)(const void* call) = [](const void*) { return std::uint64_t{0}; };
};
inline constexpr Rerun no_rerun;

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

  /// Call this when all shards have ended. Waits for pending device work. If a device failed, runs its shards again by
  /// `rerun.run(call, ...)`, as the settings of the call say. Throws the exceptions of the shards, or LimitLearnt if
  /// the call must be made again.
  void check_ends(const Rerun& rerun = no_rerun, void* call = nullptr) {
    if (eventful_.load(MemoryOrder::relaxed)) check_events(rerun, call);
  }

  /// Call this if the results could not be gathered. If the settings ask for calls with fewer rows, throws the same
  /// with the reason why this one is not made again.
  [[gnu::cold, gnu::noinline]] void say_why_not_again(const OutOfMemory& error) const {
    if (!state_.settings.shrinks) return;
    throw OutOfMemory(std::string(error.what()) + "\n  " + not_with_fewer + no_room_for_results);
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
    return *static_cast<Remains*>(static_cast<void*>(reinterpret_cast<std::byte*>(first_remains_) + i * stride_));
  }

  LateShard late_shard(std::size_t i) const noexcept {
    return {.shard = state_.place.first_shard + i,
            .device = devices_[plan()[i].device],
            .rows = state_.place.in_batch(plan()[i].rows)};
  }

  [[gnu::cold, gnu::noinline]] void check_events(const Rerun& rerun, void* call) {
    rerun.shards_ended(call);
    if (has_deadline()) tell_late();
    for (std::size_t i = 0; i < size(); ++i) {
      if (remains(i).completion) wait_for_device(remains(i));
    }
    state_.rendezvous.settle();  // or a failure found meanwhile would release a shard whose culprit is not listed
    for (std::size_t i = 0; i < size(); ++i) note_failed_collective(i);
    if (recovery() != nullptr && state_.settings.retries > 0) {
      run_again(rerun, call, rerun.refusal() == nullptr ? state_.settings.retries : 0);
      if (has_deadline()) tell_late();
    }
    if (clock() != nullptr) clock()->all_ended();
    if (rerun.refusal_of_less() == nullptr && recovery() != nullptr && state_.settings.shrinks) {
      note_limits(rerun, call);
    }
    throw_failures(rerun);
  }

  /// Counts each failure of a device. Runs the shards of failed devices again, at most `most` times.
  void run_again(const Rerun& rerun, void* call, int most) {
    for (int tries = 0;; ++tries) {
      bool failed = false;
      for (std::size_t i = 0; i < size(); ++i) {
        if (!remains(i).template failed_with<DeviceError>()) continue;
        recovery()->note_failure(plan()[i].device);
        failed = true;
      }
      if (!failed || tries == most) return;
      for (std::size_t i = 0; i < size(); ++i) {
        if (!remains(i).template failed_with<DeviceError>()) continue;
        rerun.run(call, i, recovery()->health().other_than(plan()[i].device, i));
        if (remains(i).completion) wait_for_device(remains(i));
      }
    }
  }

  /// Notes how many rows fit into the memory of each device that had too little. Then throws LimitLearnt, unless a
  /// shard failed for another reason. Does nothing if other processes make the call, too.
  void note_limits(const Rerun& rerun, const void* call) {
    if (state_.settings.ranks != nullptr) return;
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
      if (!remains(i).template failed_with<OutOfMemory>()) {
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
      const std::uint64_t shape = rerun.shape(call);
      if (too_many <= recovery()->limits().most(shape, i)) recovery()->note_limit(shape, i, fewer);
    }
    if (fits_smaller && !failed_otherwise) throw LimitLearnt();
    if (!fits_smaller && state_.outputs.have_failed()) note_results(rerun, call);
  }

  /// Called if the results do not fit into the memory of the device that keeps all of them. Fewer rows at a time do not
  /// help there, so the device's limit is forgotten.
  void note_results(const Rerun& rerun, const void* call) {
    for (std::size_t i = 0; i < size(); ++i) {
      if (!(devices_[plan()[i].device] == state_.settings.target.space.owner)) continue;
      if (!remains(i).template failed_with<OutOfMemory>()) continue;
      remains(i).results_do_not_fit = true;
      recovery()->forget_limit(rerun.shape(call), plan()[i].device);
    }
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

  /// Throws the Timeout of a shard that waited in a collective for ranks that were late.
  static void throw_if_ranks_late(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const RanksLate& late) {
      throw Timeout(late);  // of another type: a call around this one lists it like any exception of its forward
    } catch (...) {
    }
  }

  /// Throws what the shards threw.
  void throw_failures(const Rerun& rerun) const {
    std::vector<Failure> failures;
    std::string note;
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
      const std::string reason = why_not_again(rerun, i);
      if (!shard.failed_in_forward && reason.empty()) std::rethrow_exception(shard.failure);
      if (!reason.empty()) note = reason;
      const Shard& planned = plan()[i];
      failures.push_back({.shard = state_.place.first_shard + i,
                          .device = devices_[planned.device],
                          .rows = state_.place.in_batch(planned.rows),
                          .exception = shard.failure});
    }
    if (failures.size() == 1 && state_.settings.rethrow_single) std::rethrow_exception(failures.front().exception);
    if (failures.empty()) return;
    throw ReplicaError(std::move(failures), size() + state_.place.other_shards, note);
  }

  /// Why a shard that failed with its device did not run again, though the settings of the call ask for it. Empty if
  /// they do not, or if it did run again.
  std::string why_not_again(const Rerun& rerun, std::size_t i) const {
    const Remains& shard = remains(i);
    const auto known = [this](const char* why) noexcept {  // an asynchronous call knows nothing that its model learnt
      if (why != nullptr || recovery() != nullptr) return why;
      return state_.settings.ranks == nullptr ? "since the call was asynchronous"
                                              : "since the call was asynchronous and made by several ranks";
    };
    if (state_.settings.retries > 0 && shard.template failed_with<DeviceError>()) {
      const char* const why = known(rerun.refusal());
      return why == nullptr ? std::string() : std::string("not run again on another device, ") + why;
    }
    if (!state_.settings.shrinks || !shard.template failed_with<OutOfMemory>()) return {};
    const char* why = known(rerun.refusal_of_less());
    if (why == nullptr && state_.settings.ranks != nullptr) why = "since several ranks make the call";
    if (why == nullptr && shard.results_do_not_fit) why = no_room_for_results;
    if (why == nullptr && plan()[i].rows.size() < 2) why = rerun.refusal_of_one_row();
    return why == nullptr ? std::string() : not_with_fewer + std::string(why);
  }

  static constexpr const char* not_with_fewer = "not made again with fewer rows at a time, ";
  static constexpr const char* no_room_for_results = "since the results do not fit into the memory for them";

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
