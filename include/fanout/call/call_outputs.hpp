// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/call/call_rendezvous.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/call/replica_error.hpp>
#include <fanout/call/shard_slot.hpp>
#include <fanout/call/shard_slots.hpp>
#include <fanout/call/timeout.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/gather/shard_results.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The slots of the shards of one call, in row order, and what happens once all have ended. A call without failures,
/// lateness or pending device work checks one flag. Borrows the plan, the settings and the devices of the set; a shard
/// names its device by position.
///
/// The order is: begin() or make_slots(); for each shard, on any thread, note_success() or note_exception(), then
/// note_end(); all_ended(); check_deadline(); gather().
template <class R>
class CallOutputs {
 public:
  CallOutputs(const Plan& plan, const CallSettings& settings, const CallStart& start, const DeviceId* devices,
              bool shards_may_meet)
      : state_(plan, settings, start, shards_may_meet), devices_(devices), slots_(plan.size()) {
    state_.rendezvous.way_is({.transport = settings.collectives, .devices = devices, .plan = &plan});
  }

  /// Call this first if shards run one at a time: others may read a slot before its shard has begun.
  void make_slots() noexcept { slots_.make_all(); }

  /// Call this first if all shards run at once. Returns true if nothing reads a slot before all shards have ended, and
  /// no rendezvous notes their ends. Then the thread that runs a shard makes its slot.
  bool begin() noexcept {
    is_plain_ = state_.deadline == Clock::never && !state_.rendezvous.notes_ends();
    if (!is_plain_) make_slots();
    return is_plain_;
  }

  CallState& state() noexcept { return state_; }
  ShardCell<R>* cells() noexcept { return slots_.cells(); }

  /// Call this if the shard has not thrown. Notes if work remains for when all have ended.
  void note_success(const ShardSlot<R>& slot) noexcept {
    if (slot.completion) eventful_.store(true, MemoryOrder::relaxed);
    if (slot.completion || !slot.scratch.empty()) holds_.store(true, MemoryOrder::relaxed);
  }

  /// Call this in the handler of what the shard has thrown.
  [[gnu::cold, gnu::noinline]] void note_exception(ShardSlot<R>& slot) noexcept {
    eventful_.store(true, MemoryOrder::relaxed);
    holds_.store(true, MemoryOrder::relaxed);
    slot.failure = std::current_exception();
    try {
      throw;
    } catch (const CommunicatorAbandoned&) {
      slot.released = true;
    } catch (...) {
    }
  }

  /// Call this when the shard has ended. Must not be called if begin() returned true.
  void note_end(std::size_t i, ShardSlot<R>& slot) noexcept {
    state_.rendezvous.end(i, slot.failure);
    if (state_.deadline != Clock::never) slot.lateness.end(Clock::now() <= state_.deadline);
  }

  /// Tells shards that wait for each other how to take back shards that no device has started.
  void tasks_are(const CallRendezvous::Tasks& tasks) noexcept { state_.rendezvous.tasks_are(tasks); }

  /// At or after the deadline: reports each late shard to the sink, once. Must be called by one thread at a time.
  [[gnu::cold, gnu::noinline]] void tell_late() noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].lateness.look() || detail::exchange(slots_[i].told_late, true)) continue;
      if (state_.settings.late_sink == nullptr) continue;
      try {
        (*state_.settings.late_sink)(late_shard(i));
      } catch (...) {  // an exception of the sink must not break the call
      }
    }
  }

  /// Call this when all shards have ended, in the process in which they began. Waits for pending device work. An
  /// exception from before a `forward` is thrown unchanged. Exceptions of `forward` are thrown as one ReplicaError.
  /// With `rethrow_single`, a single one is thrown unchanged.
  void all_ended() {
    if (is_plain_) slots_.all_are_made(!std::is_trivially_destructible_v<Value> || holds_.load(MemoryOrder::relaxed));
    if (state_.deadline != Clock::never) tell_late();
    if (eventful_.load(MemoryOrder::relaxed)) check_events();
  }

  /// Call this next. If shards were late, throws Timeout with the results of the others.
  void check_deadline() {
    if (state_.deadline != Clock::never) throw_timeout();
  }

  const Plan& plan() const noexcept { return state_.plan; }
  const ShardSlot<R>& operator[](std::size_t i) const noexcept { return slots_[i]; }

  /// Gathers the results. Moves from the shards' values, so it may be called once.
  gathered_t<R> gather() {
    if constexpr (!std::is_void_v<R>) {
      ShardResults<R> pieces(slots_.size(), true, [this](std::size_t i) -> const R& { return slots_[i].value(); });
      return gather_and_wait(pieces, {.plan = state_.plan,
                                      .devices = devices_,
                                      .target = state_.settings.target,
                                      .axis = state_.settings.axis,
                                      .team = state_.settings.team,
                                      .outputs = &state_.outputs});
    }
  }

 private:
  [[gnu::cold, gnu::noinline]] void check_events() {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].completion) wait_for_device(slots_[i]);
    }
    throw_failures();
  }

  static void wait_for_device(ShardSlot<R>& slot) noexcept {
    try {
      slot.completion.wait();
    } catch (...) {
      slot.failure = std::current_exception();
      slot.failed_in_forward = true;
    }
  }

  const DeviceId& device(std::size_t i) const noexcept { return devices_[state_.plan[i].device]; }
  LateShard late_shard(std::size_t i) const noexcept {
    return {.shard = i, .device = device(i), .rows = state_.plan[i].rows};
  }

  [[gnu::cold, gnu::noinline]] void throw_timeout() {
    SmallVector<LateShard> late;
    Plan in_time;  // their rows, without gaps
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].lateness.is_late()) {
        late.push_back(late_shard(i));
      } else {
        const std::size_t begin = in_time.rows();
        in_time.add({.rows = {begin, begin + state_.plan[i].rows.size()}, .device = state_.plan[i].device});
      }
    }
    if (late.size() == 0) return;
    Timeout timeout(std::move(late), slots_.size(), state_.settings.deadline);
    using finding = detail::find_ungatherable_t<Concatenate, R, detail::LeafAt<>>;
    if constexpr (!std::is_void_v<R> && std::is_void_v<finding>) {
      std::size_t next = 0;
      const auto shard_in_time = [this, &next] {
        while (slots_[next].lateness.is_late()) ++next;
        return next++;
      };
      const InlineArray<std::size_t> shards(in_time.size(), [&](std::size_t) { return shard_in_time(); });
      ShardResults<R> pieces(shards.size(), true, [&](std::size_t k) -> const R& { return slots_[shards[k]].value(); });
      try {
        if (shards.size() != 0) {
          timeout.keep_results([&] {
            return gather_and_wait(pieces, {in_time, devices_, state_.settings.target, state_.settings.axis});
          });
        }
      } catch (...) {  // no results then: the caller must learn of the Timeout
      }
    }
    throw timeout;
  }

  void throw_failures() const {
    std::vector<Failure> failures;
    bool all_released = true;  // no shard failed by itself
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      all_released = all_released && (slots_[i].failure == nullptr || slots_[i].released);
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const ShardSlot<R>& slot = slots_[i];
      if (slot.failure == nullptr || (slot.released && !all_released)) continue;
      if (!slot.failed_in_forward) std::rethrow_exception(slot.failure);
      failures.push_back({.shard = i, .device = device(i), .rows = state_.plan[i].rows, .exception = slot.failure});
    }
    if (failures.size() == 1 && state_.settings.rethrow_single) std::rethrow_exception(failures.front().exception);
    if (!failures.empty()) throw ReplicaError(std::move(failures), slots_.size());
  }

  using Value = std::conditional_t<std::is_void_v<R>, bool, R>;

  CallState state_;
  const DeviceId* devices_;
  bool is_plain_ = false;         // see begin()
  Atomic<bool> eventful_{false};  // a shard failed, or has pending device work
  Atomic<bool> holds_{false};     // a slot holds something besides its value
  ShardSlots<R> slots_;
};

}}}  // namespace fanout::v0::detail
