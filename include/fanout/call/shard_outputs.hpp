// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/base/inline_array.hpp>
#include <fanout/call/call_outputs.hpp>
#include <fanout/call/call_state.hpp>
#include <fanout/gather/gather.hpp>
#include <fanout/memory/pool.hpp>
#include <fanout/plan/plan.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Outputs that outlive their call, with copies of what they are read by.
template <class R>
struct KeptOutputs : Pooled {
  KeptOutputs(const Plan& by, const CallSettings& with, const std::vector<DeviceId>& of_set)
      : plan(by),
        settings(with),
        devices(of_set.size(), [&of_set](std::size_t i) noexcept { return of_set[i]; }),
        outputs(plan, settings, CallStart::now(settings), devices.data()) {}
  const Plan plan;
  const CallSettings settings;
  const InlineArray<DeviceId> devices;
  CallOutputs<R> outputs;
};

}  // namespace detail

/// What the shards of one call returned, in row order, with the memory that it stands in. Made by apply(), put together
/// by gather(). Can be moved; one that was moved from can only be assigned to. Borrows nothing but what the results
/// themselves point to: a view of an input that `forward` returned lives as long as that input.
template <class R>
class ShardOutputs {
 public:
  /// Empty. The call puts what its shards return into kept().
  ShardOutputs(const Plan& plan, const CallSettings& settings, const std::vector<DeviceId>& devices)
      : kept_(detail::make_pooled<detail::KeptOutputs<R>>(plan, settings, devices)) {}
  ShardOutputs(ShardOutputs&& other) noexcept : kept_(detail::exchange(other.kept_, nullptr)) {}
  ShardOutputs& operator=(ShardOutputs&& other) noexcept {
    detail::swap(kept_, other.kept_);
    return *this;
  }
  ShardOutputs(const ShardOutputs&) = delete;
  ShardOutputs& operator=(const ShardOutputs&) = delete;
  ~ShardOutputs() { delete kept_; }

  const Plan& plan() const noexcept { return kept_->plan; }
  std::size_t size() const noexcept { return plan().size(); }
  std::add_lvalue_reference_t<const R> operator[](std::size_t i) const noexcept {
    if constexpr (!std::is_void_v<R>) return kept_->outputs[i].value();
  }

  detail::CallOutputs<R>& kept() noexcept { return kept_->outputs; }

  /// The results put together; moves from the shards' values, so once only.
  gathered_t<R> gather() && { return kept_->outputs.gather(); }

 private:
  detail::KeptOutputs<R>* kept_;
};

/// Puts together what apply() returned. Throws ShapeMismatch and StructureMismatch for results that do not fit
/// together.
template <class R>
gathered_t<R> gather(ShardOutputs<R>&& outputs) {
  return std::move(outputs).gather();
}

}}  // namespace fanout::v0
