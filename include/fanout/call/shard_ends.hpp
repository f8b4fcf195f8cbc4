// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/ranks_late.hpp>
#include <fanout/call/replica_error.hpp>
#include <fanout/call/shard_slot.hpp>
#include <fanout/device/device_table.hpp>
#include <fanout/dispatch/deal.hpp>
#include <fanout/dispatch/moved_shards.hpp>
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
/// 4. `run` runs a shard again, on a device.
/// 5. `shape` is that of the call's arguments: see batch_shape().
struct Rerun {
  const char* (*refusal)() noexcept = &no_reason;
  const char* (*refusal_of_less)() noexcept = &no_reason;
  const char* (*refusal_of_one_row)() noexcept = &no_reason;
  void (*run)(void* call, std::size_t shard, std::size_t device) = [](void*, std::size_t, std::size_t) {};
  std::uint64_t (*shape)(const void* call) = [](const void*) { return std::uint64_t{0}; };
};
inline constexpr Rerun no_rerun;

/// How the shards of one call end: with exceptions, late, or with pending device work. All calls share this code,
/// whatever their shards return. Borrows the plan, the settings and the devices of the set; a shard names its device by
/// position.
class ShardEnds {
 public:
  ShardEnds(const Plan& plan, const CallSettings& settings, const CallRequest& request, const DeviceId* devices,
            bool shards_may_meet)
      : state_(plan, settings, request, devices, shards_may_meet), plan_(&plan) {}

  CallState& state() noexcept { return state_; }
  /// Each shard with the device that runs it.
  const Plan& plan() const noexcept { return *plan_; }

  /// Deals the shards to the devices that are free, instead of running them as planned. Call this before they run.
  Deal& deal(const DeviceTable& devices, const BlockRunner& runner) {
    return moved_.deal(state_.plan, devices, runner);
  }

  /// Call this if the shard has not thrown. Notes if work remains for when all have ended.
  void note_success(const ShardRemains& shard) noexcept {
    if (shard.completion) eventful_.store(true, MemoryOrder::relaxed);
    if (shard.completion || !shard.scratch.empty()) holds_.store(true, MemoryOrder::relaxed);
  }

  /// Call this in the `catch` block of what the shard has thrown.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void note_exception(ShardRemains& shard) noexcept;

  /// Call this when the shard begins, unless nothing notes that. Returns the device that runs it.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE std::size_t begin_shard(std::size_t i, std::size_t planned,
                                                                     const ShardRemains& shard) noexcept;

  /// Call this when the shard has its inputs, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void forward_begins(std::size_t i) noexcept;
  /// Call this when `forward` has returned, if work on the device may go on, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void forward_returned(std::size_t i) noexcept;

  /// Call this when the shard has ended, unless nothing notes the ends of shards.
  FANOUT_INLINE void note_end(std::size_t i, ShardRemains& shard) noexcept;

  /// Tells shards that wait for each other how to take back shards that no device has started.
  void tasks_are(const CallRendezvous::Tasks& tasks) noexcept { state_.rendezvous.tasks_are(tasks); }

  /// At or after the deadline: reports each late shard to the sink, once. Must be called by one thread at a time.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void tell_late() noexcept;

 protected:
  /// The remains of all shards lie at this distance, in bytes.
  void remains_are(ShardRemains& first, std::size_t stride) noexcept {
    first_remains_ = &first;
    stride_ = stride;
  }

  std::size_t size() const noexcept { return state_.plan.size(); }
  bool has_deadline() const noexcept { return state_.deadline != Clock::never; }
  /// See CallState::again().
  void again() {
    state_.again();
    moved_.release();
    plan_ = &state_.plan;
    eventful_.store(false, MemoryOrder::relaxed);
    holds_.store(false, MemoryOrder::relaxed);
  }
  /// True if something besides values is to be destroyed.
  bool holds() const noexcept { return holds_.load(MemoryOrder::relaxed); }
  const DeviceId* devices() const noexcept { return state_.devices; }

  /// Call this when all shards have ended. Waits for pending device work. If a device failed, runs its shards again by
  /// `rerun.run(call, ...)`, as the settings of the call say. Returns false if the call must be made again, since
  /// a device's memory was too small for its rows. Otherwise throws the exceptions of the shards.
  [[nodiscard]] bool check_ends(const Rerun& rerun = no_rerun, void* call = nullptr) {
    return !eventful_.load(MemoryOrder::relaxed) || check_events(rerun, call);
  }

  /// Call this if the results could not be gathered. If the settings ask for calls with fewer rows, throws the same
  /// with the reason why this one is not made again.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void say_why_not_again(const OutOfMemory& error) const;

  /// Call this before shards run, if begin_shard() and note_end() are called. Throws std::bad_alloc.
  FANOUT_INLINE void ends_are_noted();

  bool is_late(std::size_t i) const noexcept { return remains(i).lateness.is_late(); }

  FANOUT_INLINE SmallVector<LateShard> late_shards() const;

  /// The plan of the shards that were in time: their rows, without gaps.
  FANOUT_INLINE Plan plan_in_time() const;

 private:
  CallClock* clock() const noexcept { return state_.clock; }
  Recovery* recovery() const noexcept { return state_.settings.recovery; }

  ShardRemains& remains(std::size_t i) const noexcept {
    return *static_cast<ShardRemains*>(static_cast<void*>(reinterpret_cast<std::byte*>(first_remains_) + i * stride_));
  }

  /// Call this when all shards have ended, if they ran on other devices than planned. Borrows the plan.
  FANOUT_INLINE void ran_by(const Plan& plan);
  FANOUT_INLINE LateShard late_shard(std::size_t i) const noexcept;

  [[gnu::cold, gnu::noinline]] FANOUT_INLINE bool check_events(const Rerun& rerun, void* call);

  /// Counts each failure of a device. Runs the shards of failed devices again, at most `most` times.
  FANOUT_INLINE void run_again(const Rerun& rerun, void* call, int most);

  /// Notes how many rows fit into the memory of each device that had too little. Returns true if the call must be made
  /// again: only memory was missing. Does nothing if other processes make the call, too.
  FANOUT_INLINE bool note_limits(const Rerun& rerun, const void* call);

  /// Called if the results do not fit into the memory of the device that keeps all of them. Fewer rows at a time do not
  /// help there, so the device's limit is forgotten.
  FANOUT_INLINE void note_results(const Rerun& rerun, const void* call);

  FANOUT_INLINE static void wait_for_device(ShardRemains& shard) noexcept;

  /// The failure of a shard's own device replaces that of a shard which was only released.
  FANOUT_INLINE void note_failed_collective(std::size_t i) noexcept;

  /// True if the shard has not failed by itself: it waited for one that failed, or is late.
  FANOUT_INLINE static bool is_release(const std::exception_ptr& failure) noexcept;

  /// Throws the Timeout of a shard that waited in a collective for ranks that were late.
  FANOUT_INLINE static void throw_if_ranks_late(const std::exception_ptr& failure);

  /// Throws what the shards threw.
  FANOUT_INLINE void throw_failures(const Rerun& rerun) const;

  /// Why a shard that failed with its device did not run again, though the settings of the call ask for it. Empty if
  /// they do not, or if it did run again.
  FANOUT_INLINE std::string why_not_again(const Rerun& rerun, std::size_t i) const;

  static constexpr const char* not_with_fewer = "not made again with fewer rows at a time, ";
  static constexpr const char* no_room_for_results = "since the results do not fit into the memory for them";

  CallState state_;
  const Plan* plan_;
  MovedShards moved_;
  ShardRemains* first_remains_ = nullptr;
  std::size_t stride_ = 0;
  // A shard failed, has pending device work or ran elsewhere, or the call is measured or has a deadline.
  Atomic<bool> eventful_{false};
  Atomic<bool> holds_{false};  // a slot holds something besides its value
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/shard_ends.ipp>
#endif
