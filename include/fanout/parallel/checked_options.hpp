// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/owned.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/base/type_name.hpp>
#include <fanout/call/call_settings.hpp>
#include <fanout/collective/process_ranks.hpp>
#include <fanout/measure/call_observer.hpp>
#include <fanout/measure/measured_calls.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/output_buffer.hpp>
#include <fanout/parallel/options.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/recovery/recovery.hpp>
#include <fanout/scatter/batch_rows.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/waiting/call_statistics.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// The options of a ParallelModel, checked for its devices, which give each call its plan and its settings. They do not
/// depend on the type of the model, so all models on a kind of device set share this code.
struct CheckedOptions {
  /// Throws InvalidDeviceId if no device has the memory for results. Throws InvalidArgument if the split does not fit
  /// the devices, and for a negative deadline. Borrows `times`.
  [[gnu::cold]] FANOUT_INLINE CheckedOptions(Options&& with, const DeviceTable& devices, CallStatistics& times);
  CheckedOptions(const CheckedOptions&) = delete;
  CheckedOptions& operator=(const CheckedOptions&) = delete;
  FANOUT_INLINE ~CheckedOptions();

  /// The plan of a call: that of its sharded arguments, otherwise that of its rows. A call without rows has one shard
  /// for the main device, or one for each device if `on_all`.
  FANOUT_INLINE Plan plan(const CountRows& count, bool on_all) const;
  /// One shard on each device. Throws InvalidArgument if the arguments are split in another way.
  FANOUT_INLINE Plan plan_on_each(const CountRows& count) const;
  Plan plan(std::size_t rows) const {
    if (!plans_otherwise_->load(MemoryOrder::relaxed)) [[likely]]
      return EvenSplit{}(rows, device_count);
    return plan_otherwise(rows);
  }

  template <class S>
  S split_as() const {
    const auto copy = [](const AnySplit& split) -> S {
      if (const S* const policy = split.get_if<S>()) return *policy;
      throw InvalidArgument(
          explain({.what = "split() of another type than the model's split policy", .expected = type_name<S>()}));
    };
    return measured ? measured->with_split(copy) : copy(options.split);
  }
  /// True if a call that begins now is measured, or may be made again. Reads one flag.
  bool needs_care() const noexcept { return needs_care_->load(MemoryOrder::relaxed); }

  /// See ParallelModel::readmit().
  void readmit(std::size_t device) const noexcept {
    if (recovery) ((*recovery).*settings.recovers->readmit)(device);
  }

  /// True if shards of a call with this plan may run again, or on other devices than planned.
  bool may_move_shards(const Plan& plan) const noexcept {
    return settings.retries > 0 || settings.shrinks || !plan.is_ordinary();
  }
  /// True if a call may be made again with fewer rows at a time, unless its type refuses.
  bool may_shrink() const noexcept { return settings.shrinks && settings.ranks == nullptr; }

  Options options;
  std::size_t device_count;
  const Owned<MeasuredCalls> measured;  // what measured calls tell when they end; none if only the process may measure
  const Owned<Recovery> recovery;       // none if no shards run again
  CallSettings settings;                // not changed once it is made

 private:
  [[gnu::noinline]] FANOUT_INLINE Plan plan_otherwise(std::size_t rows) const;
  FANOUT_INLINE const MeasurePart* measure_part() const noexcept;
  FANOUT_INLINE const RecoveryPart* recovery_part() const noexcept;

  static inline const Atomic<bool> always_{true};
  static inline const Atomic<bool> never_{false};

  const Atomic<bool>* const plans_otherwise_ = !options.split.is_even() ? &always_
                                               : recovery               ? &recovery->changes_plans()
                                                                        : &never_;
  const Atomic<bool>* const needs_care_ =
      measured || options.shrink_on_out_of_memory ? &always_ : &process_observer.flag();

  /// Called before the replicas are made, since a factory may take long.
  [[gnu::cold]] FANOUT_INLINE CallSettings check(const DeviceTable& devices, CallStatistics& times) const;

  [[gnu::cold]] FANOUT_INLINE void check_sharded(const Plan& plan) const;

  /// The memory in which results are gathered.
  [[gnu::cold]] FANOUT_INLINE backend::Memory find_target(const DeviceTable& devices) const;
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/parallel/checked_options.ipp>
#endif
