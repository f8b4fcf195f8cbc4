// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/parallel/call_frame.hpp>
#include <fanout/parallel/gather.hpp>
#include <fanout/parallel/pieces.hpp>
#include <fanout/parallel/replica_error.hpp>
#include <fanout/parallel/shard_slot.hpp>

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
  /// and `rethrow_single`; else calls `finish()`.
  template <class RunAll, class Run, class Finish = detail::NothingMore>
  ShardOutputs(const Plan& plan, const CallSettings& settings, const std::vector<DeviceId>& devices,
               const RunAll& run_all, const Run& run, const Finish& finish = {})
      : frame_(plan, settings),
        devices_(plan.size(), [&](std::size_t i) { return devices[plan[i].device]; }),
        slots_(plan.size()) {
    run_all(frame_.plan, [this, &run](std::size_t i) noexcept {
      try {
        run(i, frame_, slots_[i]);
      } catch (...) {
        slots_[i].failure = std::current_exception();
      }
    });
    throw_failures(settings.rethrow_single);
    finish();
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
      return fanout::gather(pieces, {frame_.plan, devices_.data(), frame_.target, frame_.axis});
    }
  }

 private:
  void throw_failures(bool rethrow_single) const {
    std::vector<Failure> failures;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const ShardSlot<R>& slot = slots_[i];
      if (slot.failure == nullptr) continue;
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
