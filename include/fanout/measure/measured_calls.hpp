// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/any_function.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/measure/call_totals.hpp>
#include <fanout/measure/progress.hpp>
#include <fanout/plan/any_split.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The measured calls of one model: adds up their times, and shows them to the split policy if that observes calls.
/// Thread-safe. Borrows the policy, and the function that is told of the progress of calls, until close().
/// Reference-counted: see ModelMeasurements.
/// `Totals` is always CallTotals<>. As a template, this costs nothing to compile in a file that calls no model.
template <class Totals = CallTotals<>>
class MeasuredCalls final : public CallObserver {
 public:
  MeasuredCalls(AnySplit& split, const AnyFunction<void(const Progress&)>& progress) noexcept
      : split_(split), progress_(progress) {}

  void retain() noexcept override { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void release() noexcept override {
    if (holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
  }

  /// Called when the model ends, after its last shard. Calls that end later are not counted.
  void close() noexcept {
    const ForkSafeLock closing(mutex_);
    is_closed_ = true;
  }

  /// The plan of the split policy.
  Plan plan(std::size_t rows, std::size_t devices) const {
    const ForkSafeLock reading(mutex_);
    return split_(rows, devices);
  }

  void ended(const CallTimes& call) noexcept override {
    const ForkSafeLock adding(mutex_);
    if (is_closed_) return;
    try {
      totals_.add(call);
      if (!call.failed) split_.observe(call);
    } catch (...) {  // without memory, this call is not counted
    }
  }

  void shard_ended(const Progress& progress) noexcept override {
    if (!progress_) return;
    try {
      progress_(progress);
    } catch (...) {  // an exception of the function must not break the call
    }
  }

  Totals totals() const {
    const ForkSafeLock reading(mutex_);
    return totals_;
  }

  /// Calls `f(split)` while no call reads or changes the policy.
  template <class F>
  auto with_split(const F& f) const {
    const ForkSafeLock reading(mutex_);
    return f(split_);
  }

 private:
  Atomic<std::size_t> holders_{1};
  mutable ForkSafeMutex mutex_;
  bool is_closed_ = false;
  AnySplit& split_;
  const AnyFunction<void(const Progress&)>& progress_;
  Totals totals_;
};

/// The MeasuredCalls of a model. Asynchronous calls whose results are not taken yet keep it beyond the model's end.
template <class Calls = MeasuredCalls<>>
class ModelMeasurements {
 public:
  ModelMeasurements(AnySplit& split, const AnyFunction<void(const Progress&)>& progress)
      : calls_(new Calls(split, progress)) {}
  ModelMeasurements(const ModelMeasurements&) = delete;
  ModelMeasurements& operator=(const ModelMeasurements&) = delete;
  ~ModelMeasurements() {
    calls_->close();
    calls_->release();
  }

  Calls* operator->() const noexcept { return calls_; }
  Calls* get() const noexcept { return calls_; }

 private:
  Calls* const calls_;
};

}}}  // namespace fanout::v0::detail
