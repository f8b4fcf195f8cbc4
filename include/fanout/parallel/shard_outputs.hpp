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
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/call_meeting.hpp>
#include <fanout/parallel/gather.hpp>
#include <fanout/parallel/pieces.hpp>
#include <fanout/parallel/replica_error.hpp>
#include <fanout/parallel/shard_slot.hpp>
#include <fanout/parallel/timeout.hpp>
#include <fanout/sync/clock.hpp>

namespace fanout::inline v0 {

namespace detail {

struct NothingMore {
  void operator()() const noexcept {}
};

}  // namespace detail

/// What the shards of one call returned, in row order, with the memory that it stands in. Made by apply(), put together
/// by gather(). Borrows nothing but what the results themselves point to: a view of an input that `forward` returned
/// lives as long as that input.
template <class R>
class ShardOutputs {
 public:
  /// Lets `run(i, frame, slot)` fill the slot of each shard, by way of `run_all(plan, body)`, which calls `body(i)` for
  /// each shard and returns when all have ended. The plan's devices are positions in `devices`. Throws what a shard
  /// threw before its `forward` began as it is, and what `forward` threw as a ReplicaError, or as it is if it is one
  /// and `rethrow_single`; else calls `finish()`. Then, if some were late, throws Timeout with the results of the
  /// others.
  template <class RunAll, class Run, class Finish = detail::NothingMore>
  ShardOutputs(const Plan& plan, const CallSettings& settings, const std::vector<DeviceId>& devices,
               const RunAll& run_all, const Run& run, const Finish& finish = {})
      : ShardOutputs(plan, settings, devices) {
    run_all(frame_.plan, Shards<Run>{*this, run});
    check(finish);
  }

  /// For shards that run by and by, each with one run(), until check() is called for all.
  ShardOutputs(const Plan& plan, const CallSettings& settings, const std::vector<DeviceId>& devices)
      : frame_(plan, settings),
        devices_(plan.size(), [&](std::size_t i) { return devices[plan[i].device]; }),
        slots_(plan.size()) {
    frame_.meeting.way_is({.operations = settings.collectives, .devices = devices_.data()});
  }

  /// Lets `run(i, frame, slot)` fill the slot of the i-th shard, and keeps what it throws.
  template <class Run>
  void run(std::size_t i, const Run& run) noexcept {
    try {
      run(i, frame_, slots_[i]);
    } catch (const CommunicatorAbandoned&) {
      slots_[i].failure = std::current_exception();
      slots_[i].released = true;
    } catch (...) {
      slots_[i].failure = std::current_exception();
    }
    frame_.meeting.end(i, slots_[i].failure);
    if (frame_.deadline != Clock::never) slots_[i].lateness.end(Clock::now() <= frame_.deadline);
  }

  /// Where shards that wait for each other find those that no device has started.
  void tasks_are(const CallMeeting::Tasks& tasks) noexcept { frame_.meeting.tasks_are(tasks); }

  /// At or after the deadline: tells the sink which shards have not ended by then, each once. One thread at a time.
  void tell_late() noexcept {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!slots_[i].lateness.look() || detail::exchange(slots_[i].told_late, true)) continue;
      if (frame_.late_sink == nullptr) continue;
      try {
        (*frame_.late_sink)(late_shard(i));
      } catch (...) {  // what is told must not break the call
      }
    }
  }

  /// When all shards have run: throws, or calls `finish()`, as the constructor does.
  template <class Finish = detail::NothingMore>
  void check(const Finish& finish = {}) {
    if (frame_.deadline != Clock::never) tell_late();
    for (ShardSlot<R>& slot : slots_) {
      if (slot.completion) wait_for_device(slot);
    }
    throw_failures(frame_.rethrow_single);
    finish();
    if (frame_.deadline != Clock::never) throw_timeout();
  }

  const Plan& plan() const noexcept { return frame_.plan; }
  std::size_t size() const noexcept { return slots_.size(); }
  std::add_lvalue_reference_t<const R> operator[](std::size_t i) const noexcept {
    if constexpr (!std::is_void_v<R>) return slots_[i].value();
  }

  /// The results put together; moves from the shards' values, so once only.
  gathered_t<R> gather() && {
    if constexpr (!std::is_void_v<R>) {
      Pieces<R> pieces(slots_.size(), true);
      for (std::size_t i = 0; i < slots_.size(); ++i) pieces.set(i, slots_[i].value());
      return detail::gather_and_wait(pieces, {.plan = frame_.plan,
                                              .devices = devices_.data(),
                                              .target = frame_.target,
                                              .axis = frame_.axis,
                                              .crew = frame_.crew,
                                              .outputs = &frame_.outputs});
    }
  }

 private:
  /// All shards of a call, as the one who runs them sees it.
  template <class Run>
  struct Shards {
    ShardOutputs& outputs;
    const Run& run;
    void operator()(std::size_t i) const noexcept { outputs.run(i, run); }
    void tell_late() const noexcept { outputs.tell_late(); }
    template <class Tasks>
    void tasks_are(Tasks& tasks) const noexcept {
      outputs.tasks_are(
          {.take_back = [](void* from) noexcept { return static_cast<Tasks*>(from)->take_back(); }, .from = &tasks});
    }
  };

  static void wait_for_device(ShardSlot<R>& slot) noexcept {
    try {
      slot.completion.wait();
    } catch (...) {
      slot.failure = std::current_exception();
      slot.failed_in_forward = true;
    }
  }

  LateShard late_shard(std::size_t i) const noexcept {
    return {.shard = i, .device = devices_[i], .rows = frame_.plan[i].rows};
  }

  void throw_timeout() {
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
      const InlineArray<DeviceId> devices(in_time.size(), [&](std::size_t k) { return devices_[shards[k]]; });
      Pieces<R> pieces(shards.size(), true);
      for (std::size_t k = 0; k < shards.size(); ++k) pieces.set(k, slots_[shards[k]].value());
      try {
        if (shards.size() != 0) {
          timeout.keep_results([&] {
            return detail::gather_and_wait(pieces, {in_time, devices.data(), frame_.target, frame_.axis});
          });
        }
      } catch (...) {  // there are none then: that the call took too long is what its caller has to know
      }
    }
    throw timeout;
  }

  void throw_failures(bool rethrow_single) const {
    std::vector<Failure> failures;
    bool all_released = true;  // none has failed by itself
    for (const ShardSlot<R>& slot : slots_) all_released = all_released && (slot.failure == nullptr || slot.released);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const ShardSlot<R>& slot = slots_[i];
      if (slot.failure == nullptr || (slot.released && !all_released)) continue;
      if (!slot.failed_in_forward) std::rethrow_exception(slot.failure);
      failures.push_back({.shard = i, .device = devices_[i], .rows = frame_.plan[i].rows, .exception = slot.failure});
    }
    if (failures.size() == 1 && rethrow_single) std::rethrow_exception(failures.front().exception);
    if (!failures.empty()) throw ReplicaError(std::move(failures), slots_.size());
  }

  CallFrame frame_;
  InlineArray<DeviceId> devices_;  // that ran the shards, one for each
  InlineArray<ShardSlot<R>> slots_;
};

/// Puts together what apply() returned. Throws ShapeMismatch and StructureMismatch for results that do not fit
/// together.
template <class R>
gathered_t<R> gather(ShardOutputs<R>&& outputs) {
  return std::move(outputs).gather();
}

}  // namespace fanout::inline v0
