// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/cache_line.hpp>
#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/base/small_vector.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/call_meeting.hpp>
#include <fanout/parallel/gather.hpp>
#include <fanout/parallel/pieces.hpp>
#include <fanout/parallel/replica_error.hpp>
#include <fanout/parallel/shard_slot.hpp>
#include <fanout/parallel/shard_slots.hpp>
#include <fanout/parallel/timeout.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout::inline v0 {

namespace detail {

/// Room for what all shards of a call read, if it is small. Other cores read these lines in the last call, too, so that
/// they take long to come back: a call makes the room first, which asks for them, and does other things meanwhile.
struct alignas(cores_apart) ShardsRoom {
  ShardsRoom() noexcept {
    for (std::size_t at = 0; at < sizeof(bytes); at += cache_line) __builtin_prefetch(bytes + at, 1);
  }
  ShardsRoom(const ShardsRoom&) = delete;
  ShardsRoom& operator=(const ShardsRoom&) = delete;

  std::byte bytes[cores_apart];
};

/// What the shards of one call leave, in row order, while the call lasts. A call in which nothing fails, is late or goes
/// on on a device asks for none of these things, but for one flag. Borrows the plan, and the devices by their positions
/// in the set.
template <class R>
class CallOutputs {
 public:
  CallOutputs(const Plan& plan, const CallSettings& settings, const DeviceId* devices, ShardsRoom& room)
      : frame_(plan, settings), devices_(devices), room_(room), slots_(plan.size()) {
    frame_.meeting.way_is({.operations = settings.collectives, .devices = devices, .plan = &plan});
  }

  /// Lets `run(i, frame, slot)` fill the slot of each shard, by way of `run_all(plan, body)`, and then checks them; see
  /// ShardOutputs.
  template <class RunAll, class Run, class Finish>
  void run_all(const RunAll& run_all, const Run& run, const Finish& finish) {
    using AllShards = Shards<Run>;
    const bool plain = frame_.deadline == Clock::never && !frame_.meeting.notes_ends() && !slots_.are_made();
    if (!plain && !slots_.are_made()) slots_.make_all();
    if constexpr (sizeof(AllShards) <= sizeof(room_.bytes) && std::is_trivially_destructible_v<AllShards>) {
      run_all(frame_.plan, *::new (static_cast<void*>(room_.bytes)) AllShards{*this, slots_.cells(), plain, run});
    } else {
      run_all(frame_.plan, AllShards{*this, slots_.cells(), plain, run});
    }
    // Not so where that throws: in the child of a fork, in which some are the parent's.
    if (plain) slots_.all_are_made(!std::is_trivially_destructible_v<Value> || holds_.load(MemoryOrder::relaxed));
    check(finish);
  }

  /// Before shards run by and by.
  void make_slots() noexcept { slots_.make_all(); }

  /// Lets `run(i, frame, slot)` fill the slot of the i-th shard, and keeps what it throws.
  template <class Run>
  void run(std::size_t i, const Run& run) noexcept {
    run_in(slots_.cells()[i], false, i, run);
  }

  /// Where shards that wait for each other find those that no device has started.
  void tasks_are(const CallMeeting::Tasks& tasks) noexcept { frame_.meeting.tasks_are(tasks); }

  /// At or after the deadline: tells the sink which shards have not ended by then, each once. One thread at a time.
  [[gnu::cold, gnu::noinline]] void tell_late() noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].lateness.look() || detail::exchange(slots_[i].told_late, true)) continue;
      if (frame_.late_sink == nullptr) continue;
      try {
        (*frame_.late_sink)(late_shard(i));
      } catch (...) {  // what is told must not break the call
      }
    }
  }

  /// When all shards have run: throws, or calls `finish()`; see ShardOutputs.
  template <class Finish>
  void check(const Finish& finish) {
    const bool timed = frame_.deadline != Clock::never;
    if (timed) tell_late();
    if (eventful_.load(MemoryOrder::relaxed)) check_events();
    finish();
    if (timed) throw_timeout();
  }

  const Plan& plan() const noexcept { return frame_.plan; }
  const ShardSlot<R>& operator[](std::size_t i) const noexcept { return slots_[i]; }

  /// The results put together; moves from the shards' values, so once only.
  gathered_t<R> gather() {
    if constexpr (!std::is_void_v<R>) {
      Pieces<R> pieces(slots_.size(), true, [this](std::size_t i) -> const R& { return slots_[i].value(); });
      return gather_and_wait(pieces, {.plan = frame_.plan,
                                      .devices = devices_,
                                      .target = frame_.target,
                                      .axis = frame_.axis,
                                      .crew = frame_.crew,
                                      .outputs = &frame_.outputs});
    }
  }

 private:
  /// All shards of a call, as those see it who run them. Another core fetches each line that is read here from the
  /// caller's, which takes longer than all else that a call does. So they are few, and are asked for at once.
  template <class Run>
  struct alignas(cache_line) Shards {
    CallOutputs& outputs;
    ShardCell<R>* cells;
    bool plain;  // nothing of the frame is to be looked at, and the slots are not made yet
    Run run;

    void operator()(std::size_t i) const noexcept {
      const auto* const here = reinterpret_cast<const std::byte*>(this);
      __builtin_prefetch(here + cache_line);
      ShardCell<R>& cell = cells[i];
      outputs.run_in(cell, plain, i, run);
    }
    Atomic<bool>& ended(std::size_t i) const noexcept { return cells[i].ended(); }
    void tell_late() const noexcept { outputs.tell_late(); }
    template <class Tasks>
    void tasks_are(Tasks& tasks) const noexcept {
      outputs.tasks_are(
          {.take_back = [](void* from) noexcept { return static_cast<Tasks*>(from)->take_back(); }, .from = &tasks});
    }
  };

  template <class Run>
  void run_in(ShardCell<R>& cell, bool plain, std::size_t i, const Run& run) noexcept {
    if (plain) cell.make();
    ShardSlot<R>& slot = cell.slot();
    try {
      run(i, frame_, slot);
      if (slot.completion) eventful_.store(true, MemoryOrder::relaxed);
      if (slot.completion || !slot.scratch.empty()) holds_.store(true, MemoryOrder::relaxed);
    } catch (...) {
      keep_exception(slot);
    }
    if (plain) return;
    frame_.meeting.end(i, slot.failure);
    if (frame_.deadline != Clock::never) slot.lateness.end(Clock::now() <= frame_.deadline);
  }

  [[gnu::cold, gnu::noinline]] void keep_exception(ShardSlot<R>& slot) noexcept {
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

  const DeviceId& device(std::size_t i) const noexcept { return devices_[frame_.plan[i].device]; }
  LateShard late_shard(std::size_t i) const noexcept {
    return {.shard = i, .device = device(i), .rows = frame_.plan[i].rows};
  }

  [[gnu::cold, gnu::noinline]] void throw_timeout() {
    SmallVector<LateShard> late;
    Plan in_time;  // of their rows, put together
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].lateness.is_late()) {
        late.push_back(late_shard(i));
      } else {
        const std::size_t begin = in_time.rows();
        in_time.add({.rows = {begin, begin + frame_.plan[i].rows.size()}, .device = frame_.plan[i].device});
      }
    }
    if (late.size() == 0) return;
    Timeout timeout(std::move(late), slots_.size(), frame_.allowed);
    using finding = detail::find_ungatherable_t<Concatenate, R, detail::LeafAt<>>;
    if constexpr (!std::is_void_v<R> && std::is_void_v<finding>) {
      std::size_t next = 0;
      const auto shard_in_time = [this, &next] {
        while (slots_[next].lateness.is_late()) ++next;
        return next++;
      };
      const InlineArray<std::size_t> shards(in_time.size(), [&](std::size_t) { return shard_in_time(); });
      Pieces<R> pieces(shards.size(), true, [&](std::size_t k) -> const R& { return slots_[shards[k]].value(); });
      try {
        if (shards.size() != 0) {
          timeout.keep_results([&] {
            return gather_and_wait(pieces, {in_time, devices_, frame_.target, frame_.axis});
          });
        }
      } catch (...) {  // there are none then: that the call took too long is what its caller has to know
      }
    }
    throw timeout;
  }

  void throw_failures() const {
    std::vector<Failure> failures;
    bool all_released = true;  // none has failed by itself
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      all_released = all_released && (slots_[i].failure == nullptr || slots_[i].released);
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const ShardSlot<R>& slot = slots_[i];
      if (slot.failure == nullptr || (slot.released && !all_released)) continue;
      if (!slot.failed_in_forward) std::rethrow_exception(slot.failure);
      failures.push_back({.shard = i, .device = device(i), .rows = frame_.plan[i].rows, .exception = slot.failure});
    }
    if (failures.size() == 1 && frame_.rethrow_single) std::rethrow_exception(failures.front().exception);
    if (!failures.empty()) throw ReplicaError(std::move(failures), slots_.size());
  }

  using Value = std::conditional_t<std::is_void_v<R>, bool, R>;

  CallFrame frame_;
  const DeviceId* devices_;
  ShardsRoom& room_;
  Atomic<bool> eventful_{false};  // a shard failed, or its device goes on
  Atomic<bool> holds_{false};     // a slot holds something besides its value
  ShardSlots<R> slots_;
};

}  // namespace detail
}  // namespace fanout::inline v0
