// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/call/call_parts.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/call/call_scope.hpp>
#include <fanout/call/call_settings.hpp>
#include <fanout/call/late_shard.hpp>
#include <fanout/call/shard_remains.hpp>
#include <fanout/dispatch/typed_call.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/plan/batch_place.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What the caller asks of a call besides its arguments. Borrows the targets and the memory.
struct CallRequest {
  bool on_all = false;                      ///< runs on every device if no argument is split
  const backend::Memory* memory = nullptr;  ///< in which results are gathered; null: that of the settings
  const OutputTarget* targets = nullptr;    ///< memory of the caller's for outputs, in the order of the output() calls
  std::size_t target_count = 0;
};
inline constexpr CallRequest plain_request;
inline constexpr CallRequest on_all_request{.on_all = true};

class CallClock;
struct MovedShards;

/// One call, whatever its types: what its shards share, and how they end: with exceptions, late, or with pending device
/// work. The parts that options bring are in other headers: see call_parts.hpp. A shard names its device by position.
class CallFrame {
 public:
  /// `of_set`: the devices of the set. `shards_may_meet`: see CallRendezvous. Borrows all.
  CallFrame(const Plan& by, const CallSettings& with, const CallRequest& asked, const DeviceId* of_set,
            bool shards_may_meet)
      : plan(by),
        settings(with),
        request(asked),
        target(asked.memory != nullptr ? *asked.memory : with.target),
        devices(of_set),
        outputs(target),
        rendezvous(by.size(), shards_may_meet),
        as_run_(&by) {
    outputs.write_to(asked.targets, asked.target_count);
  }
  CallFrame(const CallFrame&) = delete;
  CallFrame& operator=(const CallFrame&) = delete;

  /// Call this once, on the calling thread, before shards run. The deadline counts from now on. `measured` may be null.
  void begin(std::uint32_t number_of_call, CallClock* measured) noexcept {
    number = number_of_call;
    clock = measured;
    if (!(settings.deadline == Duration::forever())) deadline = Clock::after(settings.deadline);
    stop_at = Clock::earlier(deadline, stop_time(current_call()));
  }

  const Plan& plan;
  const CallSettings& settings;
  const CallRequest& request;
  const backend::Memory& target;  ///< the memory in which results are gathered
  const DeviceId* const devices;
  const BatchPlace* place = &alone_in_batch;        ///< of the shards, if several processes make the call
  backend::ProcessRendezvous* processes = nullptr;  ///< of the shards of several processes, if they may meet
  CallClock* clock = nullptr;                       ///< null if the call is not measured
  Clock::Time deadline = Clock::never;              ///< after which a shard is late
  Clock::Time stop_at = Clock::never;               ///< the same, or an earlier deadline of a call around this one
  std::uint32_t number = 0;                         ///< as a key of the random numbers
  alignas(cache_line) OutputBuffers outputs;        // so that a shard finds the first one in one cache line
  CallRendezvous rendezvous;

  // For the thread that runs a shard:

  /// Call this when the shard begins, unless nothing notes that. Returns the device that runs it.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE std::size_t begin_shard(std::size_t i, std::size_t planned,
                                                                     const ShardRemains& shard) noexcept;
  /// Call this when the shard has its inputs, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void forward_begins(std::size_t i) noexcept;
  /// True from the deadline on: that of this call, or of a call around it. Reads the clock only if there is a deadline.
  bool stop_requested() const noexcept {
    if (stop_at == Clock::never) return false;
    if (stopped_.load(MemoryOrder::relaxed)) return true;
    if (Clock::now() < stop_at) return false;
    stopped_.store(true, MemoryOrder::relaxed);
    return true;
  }
  /// Call this when `forward` has returned, if work on the device may go on, unless nothing notes that.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void forward_returned(std::size_t i) noexcept;
  /// True if a shard waits for its device's work: the call has a deadline, is measured, or runs several on a device.
  bool waits_for_devices() const noexcept { return stop_at != Clock::never || clock != nullptr || !plan.is_ordinary(); }
  /// Call this if the shard has not thrown. Notes if work remains for when all have ended.
  void note_success(const ShardRemains& shard) noexcept {
    if (shard.completion) eventful_.store(true, MemoryOrder::relaxed);
    if (shard.completion || !shard.scratch.empty()) holds_.store(true, MemoryOrder::relaxed);
  }
  /// Call this in the `catch` block of what the shard has thrown.
  [[gnu::cold, gnu::noinline]] FANOUT_INLINE void note_exception(ShardRemains& shard) noexcept;
  /// Call this when the shard has ended, unless nothing notes the ends of shards.
  FANOUT_INLINE void note_end(std::size_t i, ShardRemains& shard) noexcept;

  // For the thread that makes the call:

  /// True if deal() is to be called before the shards are dispatched.
  bool are_dealt() const noexcept { return !plan.is_ordinary() && settings.deals != nullptr; }
  /// Lets `shards` dispatch the devices instead of the shards, each of which runs shards one after the other. Throws
  /// std::bad_alloc.
  void deal(ForkJoin& shards, const DeviceTable& of_set, const TypedCall& call) {
    settings.deals->begin(*this, shards, of_set, call);
  }
  /// At or after the deadline: reports each late shard to the sink, once. Must be called by one thread at a time.
  void tell_late() noexcept {
    if (has_deadline()) call_part(settings.deadlines, &DeadlinePart::tell_late);
  }
  /// The plan with the devices that ran the shards.
  const Plan& as_run() const noexcept { return *as_run_; }

  // For the parts:

  std::size_t size() const noexcept { return plan.size(); }
  ShardRemains& remains(std::size_t i) const noexcept {
    return *static_cast<ShardRemains*>(static_cast<void*>(reinterpret_cast<std::byte*>(first_remains_) + i * stride_));
  }
  /// Waits until the device has done the work of the shard, or has failed.
  FANOUT_INLINE static void wait_for_device(ShardRemains& shard) noexcept;
  /// Notes that shards ran on other devices than planned: on those of this plan, which it borrows.
  FANOUT_INLINE void ran_by(const Plan& plan);
  /// Null if all shards ran as planned.
  Owned<MovedShards>& moved() noexcept { return moved_; }

 protected:
  ~CallFrame() = default;

  /// The remains of all shards lie at this distance, in bytes.
  void remains_are(ShardRemains& first, std::size_t stride) noexcept {
    first_remains_ = &first;
    stride_ = stride;
  }
  bool has_deadline() const noexcept { return deadline != Clock::never; }
  /// Call this before shards run, if begin_shard() and note_end() are called. Throws std::bad_alloc.
  FANOUT_INLINE void ends_are_noted();

  /// Call this when all shards have ended. Waits for pending device work. If a device failed, runs its shards again by
  /// `call.run(...)`, as the settings say. Returns false if the call must be made again, since a device's memory was
  /// too small for its rows. Otherwise throws the exceptions of the shards.
  [[nodiscard]] bool check_ends(const TypedCall& call) {
    return !eventful_.load(MemoryOrder::relaxed) || check_events(call);
  }
  /// Forgets the shards that have run. Call this if the call is made again, after its plan was changed.
  [[gnu::cold]] FANOUT_INLINE void again();
  /// True if something besides values is to be destroyed.
  bool holds() const noexcept { return holds_.load(MemoryOrder::relaxed); }
  /// Call this when all shards have ended without an exception. Throws Timeout if some were late.
  void throw_if_late(KeepResults& keep, void* of) {
    if (has_deadline()) call_part(settings.deadlines, &DeadlinePart::throw_if_late, keep, of);
  }
  /// Call this if the results could not be gathered. If the settings ask for calls with fewer rows, throws the same
  /// with the reason why this one is not made again.
  void say_why_not_again(const OutOfMemory& error) const {
    if (settings.shrinks) settings.recovers->say_why_not_shrunk(error);
  }

 private:
  template <class Part, class F, class... A>
  [[gnu::cold, gnu::noinline]] void call_part(const Part* part, F Part::*function, A&&... arguments) {
    (part->*function)(*this, arguments...);
  }

  [[gnu::cold, gnu::noinline]] FANOUT_INLINE bool check_events(const TypedCall& call);

  /// The failure of a shard's own device replaces that of a shard which was only released.
  FANOUT_INLINE void note_failed_collective(std::size_t i) noexcept;
  /// Throws what the shards threw.
  [[gnu::cold]] FANOUT_INLINE void throw_failures(const TypedCall& call) const;

  mutable Atomic<bool> stopped_{false};
  const Plan* as_run_;
  Owned<MovedShards> moved_;
  ShardRemains* first_remains_ = nullptr;
  std::size_t stride_ = 0;
  // A shard failed, has pending device work or ran elsewhere, or the call is measured or has a deadline.
  Atomic<bool> eventful_{false};
  Atomic<bool> holds_{false};  // a slot holds something besides its value
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/call/call_frame.ipp>
#endif
