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
#include <fanout/dispatch/fork_join.hpp>
#include <fanout/measure/call_clock.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call may do after a device has failed, or had too little memory.
enum class Again : std::uint8_t { on_other_devices, with_fewer_rows, with_single_rows };

/// What depends on the types of a call, as a table of functions: so all calls share the code that is no template.
struct CallTypes {
  /// Why the call cannot do it, as the end of a sentence; null if it can.
  const char* (*refusal)(Again how) noexcept;
  /// Empties the slot of a shard that runs again.
  void (*renew)(void* call, std::size_t shard) noexcept;
  /// Runs a shard on a device, on this thread. Returns false if the device failed, or has no memory.
  bool (*run)(const void* call, std::size_t shard, std::size_t device) noexcept;
  /// That of the call's arguments: see batch_shape().
  std::uint64_t (*shape)(const void* call);
};

/// A call for code that does not know its types. Borrows it.
struct TypedCall {
  const CallTypes* types;
  void* call;

  const char* refusal(Again how) const noexcept { return types->refusal(how); }
  void renew(std::size_t shard) const noexcept { types->renew(call, shard); }
  bool run(std::size_t shard, std::size_t device) const noexcept { return types->run(call, shard, device); }
  std::uint64_t shape() const { return types->shape(call); }
};

/// How the shards of one call end: with exceptions, late, or with pending device work. All calls share this code,
/// whatever their shards return. Borrows the plan, the settings and the devices of the set; a shard names its device by
/// position.
class ShardEnds {
 public:
  ShardEnds(const Plan& plan, const CallSettings& settings, const CallRequest& request, const DeviceId* devices,
            bool shards_may_meet)
      : state_(plan, settings, request, devices, shards_may_meet), plan_(&plan) {}
  ShardEnds(const ShardEnds&) = delete;
  ShardEnds& operator=(const ShardEnds&) = delete;

  CallState& state() noexcept { return state_; }
  /// Each shard with the device that runs it.
  const Plan& plan() const noexcept { return *plan_; }

  /// True if deal() is to be called before the shards are dispatched.
  bool are_dealt() const noexcept { return !state_.plan.is_ordinary() && state_.settings.deals != nullptr; }
  /// Lets `shards` dispatch the devices instead of the shards, each of which runs shards one after the other. Throws
  /// std::bad_alloc.
  void deal(ForkJoin& shards, const DeviceTable& devices, const TypedCall& call) {
    (this->*state_.settings.deals->begin)(shards, devices, call);
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
  void tell_late() noexcept {
    if (has_deadline()) call_part(state_.settings.deadlines, &DeadlinePart::tell_late);
  }

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
    if (moved_ != nullptr) call_part(state_.settings.deals, &DealPart::release);
    plan_ = &state_.plan;
    eventful_.store(false, MemoryOrder::relaxed);
    holds_.store(false, MemoryOrder::relaxed);
  }
  /// True if something besides values is to be destroyed.
  bool holds() const noexcept { return holds_.load(MemoryOrder::relaxed); }
  const DeviceId* devices() const noexcept { return state_.devices; }

  /// Call this when all shards have ended. Waits for pending device work. If a device failed, runs its shards again by
  /// `call.run(...)`, as the settings of the call say. Returns false if the call must be made again, since
  /// a device's memory was too small for its rows. Otherwise throws the exceptions of the shards.
  [[nodiscard]] bool check_ends(const TypedCall& call) {
    return !eventful_.load(MemoryOrder::relaxed) || check_events(call);
  }

  /// Call this when all shards have ended without an exception. Throws Timeout if some were late.
  void throw_if_late(KeepResults& keep, void* outputs) {
    if (has_deadline()) call_part(state_.settings.deadlines, &DeadlinePart::throw_if_late, keep, outputs);
  }

  /// Call this if the results could not be gathered. If the settings ask for calls with fewer rows, throws the same
  /// with the reason why this one is not made again.
  void say_why_not_again(const OutOfMemory& error) const {
    if (state_.settings.shrinks) (this->*state_.settings.recovers->say_why_not_again)(error);
  }

  /// Call this before shards run, if begin_shard() and note_end() are called. Throws std::bad_alloc.
  FANOUT_INLINE void ends_are_noted();

  ~ShardEnds() {
    if (moved_ != nullptr) [[unlikely]]
      call_part(state_.settings.deals, &DealPart::release);
  }

  bool is_late(std::size_t i) const noexcept { return remains(i).lateness.is_late(); }

 private:
  struct MovedShards;
  friend DealPart;
  friend DeadlinePart;
  friend RecoveryPart;

  template <class Part, class F, class... A>
  [[gnu::cold, gnu::noinline]] void call_part(const Part* part, F Part::*function, A&&... arguments) {
    (this->*(part->*function))(arguments...);
  }

  CallClock* clock() const noexcept { return state_.clock; }
  Recovery* recovery() const noexcept { return state_.settings.recovery; }

  ShardRemains& remains(std::size_t i) const noexcept {
    return *static_cast<ShardRemains*>(static_cast<void*>(reinterpret_cast<std::byte*>(first_remains_) + i * stride_));
  }

  /// Call this when all shards have ended, if they ran on other devices than planned. Borrows the plan.
  FANOUT_INLINE void ran_by(const Plan& plan);
  FANOUT_INLINE LateShard late_shard(std::size_t i) const noexcept;

  [[gnu::cold, gnu::noinline]] FANOUT_INLINE bool check_events(const TypedCall& call);

  // For the parts:
  FANOUT_INLINE void begin_deal(ForkJoin& shards, const DeviceTable& devices, const TypedCall& call);
  FANOUT_INLINE void end_deal();
  FANOUT_INLINE void release_moved() noexcept;

  FANOUT_INLINE void tell_late_shards() noexcept;
  FANOUT_INLINE void throw_late_shards(KeepResults& keep, void* outputs);
  FANOUT_INLINE SmallVector<LateShard> late_shards() const;
  /// The plan of the shards that were in time: their rows, without gaps.
  FANOUT_INLINE Plan plan_in_time() const;

  /// Runs shards again, as the settings say. Returns false if the call must be made again.
  FANOUT_INLINE bool recover(const TypedCall& call);
  FANOUT_INLINE void say_why_not_shrunk(const OutOfMemory& error) const;

  /// Counts each failure of a device. Runs the shards of failed devices again, at most `most` times.
  FANOUT_INLINE void run_again(const TypedCall& call, int most);

  /// Notes how many rows fit into the memory of each device that had too little. Returns true if the call must be made
  /// again: only memory was missing. Does nothing if other processes make the call, too.
  FANOUT_INLINE bool note_limits(const TypedCall& call);

  /// Called if the results do not fit into the memory of the device that keeps all of them. Fewer rows at a time do not
  /// help there, so the device's limit is forgotten.
  FANOUT_INLINE void note_results(const TypedCall& call);

  FANOUT_INLINE static void wait_for_device(ShardRemains& shard) noexcept;

  /// The failure of a shard's own device replaces that of a shard which was only released.
  FANOUT_INLINE void note_failed_collective(std::size_t i) noexcept;

  /// True if the shard has not failed by itself: it waited for one that failed, or is late.
  FANOUT_INLINE static bool is_release(const std::exception_ptr& failure) noexcept;

  /// Throws what the shards threw.
  [[gnu::cold]] FANOUT_INLINE void throw_failures(const TypedCall& call) const;

  /// Why a shard that failed with its device did not run again, though the settings of the call ask for it. Empty if
  /// they do not, or if it did run again.
  [[gnu::cold]] FANOUT_INLINE std::string why_not_again(const TypedCall& call, std::size_t i) const;

  static constexpr const char* not_with_fewer = "not made again with fewer rows at a time, ";
  static constexpr const char* no_room_for_results = "since the results do not fit into the memory for them";

  CallState state_;
  const Plan* plan_;
  MovedShards* moved_ = nullptr;  // owned
  ShardRemains* first_remains_ = nullptr;
  std::size_t stride_ = 0;
  // A shard failed, has pending device work or ran elsewhere, or the call is measured or has a deadline.
  Atomic<bool> eventful_{false};
  Atomic<bool> holds_{false};  // a slot holds something besides its value
};

inline constexpr DealPart DealPart::table{
    .begin = &ShardEnds::begin_deal, .end = &ShardEnds::end_deal, .release = &ShardEnds::release_moved};
inline constexpr DeadlinePart DeadlinePart::table{.tell_late = &ShardEnds::tell_late_shards,
                                                  .throw_if_late = &ShardEnds::throw_late_shards};
inline constexpr RecoveryPart RecoveryPart::table{
    .make =
        [](std::size_t devices) {
          return Owned<Recovery>(new Recovery(devices), [](Recovery* made) noexcept { delete made; });
        },
    .without_left_out = &Recovery::without_left_out,
    .within_limits = &Recovery::within_limits,
    .readmit = &Recovery::readmit,
    .recover = &ShardEnds::recover,
    .why_not_again = &ShardEnds::why_not_again,
    .say_why_not_again = &ShardEnds::say_why_not_shrunk,
    .deals = &DealPart::table};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/shard_ends.ipp>
#endif
