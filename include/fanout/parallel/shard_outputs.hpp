// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/call_meeting.hpp>
#include <fanout/parallel/call_outputs.hpp>
#include <fanout/parallel/gather.hpp>
#include <fanout/plan/plan.hpp>

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
    outputs_.run_all(run_all, run, finish);
  }

  /// For shards that run by and by, each with one run(), until check() is called for all.
  ShardOutputs(const Plan& plan, const CallSettings& settings, const std::vector<DeviceId>& devices)
      : plan_(plan),
        devices_(devices.size(), [&devices](std::size_t i) noexcept { return devices[i]; }),
        outputs_(plan_, settings, devices_.data(), room_) {
    outputs_.make_slots();
  }

  /// Lets `run(i, frame, slot)` fill the slot of the i-th shard, and keeps what it throws.
  template <class Run>
  void run(std::size_t i, const Run& run) noexcept {
    outputs_.run(i, run);
  }

  /// Where shards that wait for each other find those that no device has started.
  void tasks_are(const CallMeeting::Tasks& tasks) noexcept { outputs_.tasks_are(tasks); }

  /// At or after the deadline: tells the sink which shards have not ended by then, each once. One thread at a time.
  void tell_late() noexcept { outputs_.tell_late(); }

  /// When all shards have run: throws, or calls `finish()`, as the constructor does.
  template <class Finish = detail::NothingMore>
  void check(const Finish& finish = {}) {
    outputs_.check(finish);
  }

  const Plan& plan() const noexcept { return plan_; }
  std::size_t size() const noexcept { return plan_.size(); }
  std::add_lvalue_reference_t<const R> operator[](std::size_t i) const noexcept {
    if constexpr (!std::is_void_v<R>) return outputs_[i].value();
  }

  /// The results put together; moves from the shards' values, so once only.
  gathered_t<R> gather() && { return outputs_.gather(); }

 private:
  const Plan plan_;
  const InlineArray<DeviceId> devices_;  // of the set
  detail::ShardsRoom room_;
  detail::CallOutputs<R> outputs_;
};

/// Puts together what apply() returned. Throws ShapeMismatch and StructureMismatch for results that do not fit
/// together.
template <class R>
gathered_t<R> gather(ShardOutputs<R>&& outputs) {
  return std::move(outputs).gather();
}

}  // namespace fanout::inline v0
