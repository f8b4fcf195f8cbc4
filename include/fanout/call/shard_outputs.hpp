// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_frame.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The outputs of a call that outlive it, with copies of all that they borrow.
template <class R>
struct KeptOutputs : Pooled {
  KeptOutputs(const Plan& by, const CallSettings& with, const DeviceTable& of_set, bool shards_may_meet)
      : plan(by),
        settings(with),
        devices(of_set.size(), [&of_set](std::size_t i) noexcept { return of_set.ids()[i]; }),
        outputs(plan, settings, plain_request, devices.data(), shards_may_meet) {
    outputs.begin(0, nullptr);
  }
  const Plan plan;
  const CallSettings settings;
  const InlineArray<DeviceId> devices;
  CallOutputs<R> outputs;
};

}  // namespace detail

/// The results of the shards of one call, in row order, with the memory that they use. Made by apply(), gathered by
/// gather(). Movable; a moved-from object may only be assigned to or destroyed. Results may borrow: a view of an input
/// that `forward` returned is valid as long as that input.
template <class R>
class ShardOutputs {
 public:
  /// Without results yet: the call puts what its shards return into kept().
  ShardOutputs(const Plan& plan, const detail::CallSettings& settings, const detail::DeviceTable& devices,
               bool shards_may_meet)
      : kept_(detail::make_pooled<detail::KeptOutputs<R>>(plan, settings, devices, shards_may_meet)) {}
  ShardOutputs(ShardOutputs&& other) noexcept : kept_(std::exchange(other.kept_, nullptr)) {}
  ShardOutputs& operator=(ShardOutputs&& other) noexcept {
    std::swap(kept_, other.kept_);
    return *this;
  }
  ShardOutputs(const ShardOutputs&) = delete;
  ShardOutputs& operator=(const ShardOutputs&) = delete;
  ~ShardOutputs() { delete kept_; }

  /// The plan of the call, its number of shards, and the result of shard i. They live as long as this.
  const Plan& plan() const noexcept { return kept_->plan; }
  std::size_t size() const noexcept { return plan().size(); }
  std::add_lvalue_reference_t<const R> operator[](std::size_t i) const noexcept {
    if constexpr (!std::is_void_v<R>) return kept_->outputs[i].value();
  }

  detail::CallOutputs<R>& kept() noexcept { return kept_->outputs; }

  /// Gathers the results. Moves from the shards' values, so it may be called once.
  gathered_t<R> gather() && { return kept_->outputs.gather(); }

 private:
  detail::KeptOutputs<R>* kept_;
};

/// Gathers what apply() returned, as a call of the model does. Throws ShapeMismatch or StructureMismatch if the results
/// do not fit together.
template <class R>
gathered_t<R> gather(ShardOutputs<R>&& outputs) {
  return std::move(outputs).gather();
}

}}  // namespace fanout::v0
