// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <fanout/base/any_function.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/measure/call_clock.hpp>
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
/// Reference-counted: asynchronous calls whose results are not taken yet keep it beyond the end of the model.
class MeasuredCalls final : public CallObserver {
 public:
  MeasuredCalls(AnySplit& split, const AnyFunction<void(const Progress&)>& progress) noexcept
      : CallObserver(&make_call_clock), split_(split), progress_(progress) {}

  void retain() noexcept override { holders_.fetch_add(1, MemoryOrder::relaxed); }
  void release() noexcept override {
    if (holders_.fetch_sub(1, MemoryOrder::acq_rel) == 1) delete this;
  }

  /// Called when the model ends, after its last shard. Calls that end later are not counted.
  FANOUT_INLINE void close() noexcept;

  /// The plan of the split policy.
  FANOUT_INLINE Plan plan(std::size_t rows, std::size_t devices) const;

  FANOUT_INLINE void ended(const CallTimes& call) noexcept override;

  FANOUT_INLINE void shard_ended(const Progress& progress) noexcept override;

  FANOUT_INLINE CallTotals totals() const;

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
  CallTotals totals_;
};

/// What Options::measure, Options::progress and split policies that observe calls need: see WithPart.
struct MeasurePart {
  Owned<MeasuredCalls> (*make)(AnySplit& split, const AnyFunction<void(const Progress&)>& progress);
  Plan (MeasuredCalls::*plan)(std::size_t rows, std::size_t devices) const;
  static const MeasurePart table;
};
inline constexpr MeasurePart MeasurePart::table{
    .make =
        [](AnySplit& split, const AnyFunction<void(const Progress&)>& progress) {
          return Owned<MeasuredCalls>(new MeasuredCalls(split, progress), [](MeasuredCalls* calls) noexcept {
            calls->close();
            calls->release();
          });
        },
    .plan = &MeasuredCalls::plan};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/measure/measured_calls.ipp>
#endif
