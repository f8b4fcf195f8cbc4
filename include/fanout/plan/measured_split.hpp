// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/cost_estimate.hpp>
#include <fanout/plan/gather_times.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>
#include <fanout/plan/weighted_split.hpp>

namespace fanout { inline namespace v0 {

/// Learns the speed of each device, and gives it so many rows that all devices end at the same time:
///
///     fanout::ParallelModel model{net, host_devices(1) | cuda_devices(), {.split = fanout::MeasuredSplit{}}};
///
/// - A shard is taken to cost a fixed time, and a time for each row. Both are learnt for each device, and for each size
///   of the batch up to a factor of two. A device gets no rows if its fixed time is above the time of the others.
/// - What calls take besides their shards is learnt, too. If one device alone is faster than all together, for example
///   since results need no copies then, it gets all rows. A device that may be so is tried alone once.
/// - A large change is believed after one call. Small changes are averaged over up to 32 calls. A plan changes only if
///   calls gain 0.5 % by it.
/// - A device without rows gets one now and then, in case it has become faster. That takes 1 % of the time at most.
/// - Batches of at most four rows for each device are first tried on each device alone.
/// - Before the first call, weights are guessed: a device of another kind than the host's counts as ten host devices.
///
/// Each model learns for itself, with its own copy of the policy. ParallelModel::split() returns that copy. Not
/// thread-safe by itself; a model calls it by one thread at a time.
class MeasuredSplit {
  struct DeviceShards {
    std::size_t rows;
    double seconds;
  };

 public:
  MeasuredSplit() = default;
  /// Begins with these weights, one for each device, for example those that an earlier run has learnt: see weights().
  /// Weights are in proportion to rows per second. A device of weight zero gets no rows. Throws InvalidArgument as
  /// WeightedSplit does.
  template <detail::RangeOfWeights R>
  explicit MeasuredSplit(const R& weights) : guess_(std::begin(weights), std::end(weights)) {
    static_cast<void>(WeightedSplit(guess_));
  }

  /// The plan for `rows` rows. Throws InvalidArgument as weights() does.
  FANOUT_INLINE Plan operator()(std::size_t rows, std::size_t devices) const;

  /// Guesses the weights from the kinds of the devices. A model calls this when it is made.
  void begin(const DeviceId* devices, std::size_t count) {
    if (!guess_.empty()) return;
    for (std::size_t i = 0; i < count; ++i) guess_.push_back(devices[i].kind == DeviceKind("host") ? 1 : 10);
  }

  /// Learns from a call. Throws std::bad_alloc.
  FANOUT_INLINE void observe(const CallTimes& call);

  /// The share of each device in a batch of `rows` rows; `rows` must be at least 1. The shares add up to 1. Throws
  /// InvalidArgument if the policy has learnt of another number of devices, or began with another number of weights.
  FANOUT_INLINE std::vector<double> weights(std::size_t rows, std::size_t devices) const;

  /// A policy that keeps the present weights of batches of `rows` rows. Throws InvalidArgument as weights() does.
  WeightedSplit frozen(std::size_t rows, std::size_t devices) const { return WeightedSplit(weights(rows, devices)); }

 private:
  using Costs = std::vector<detail::ShardCost>;

  static constexpr std::size_t none = ~std::size_t{0};  // before the first device
  static constexpr std::size_t done = none - 1;

  /// How much longer the shards of a device took when it ran all rows alone than it has been learnt. The mean of its
  /// last calls.
  struct AloneRatio {
    double ratio = 1;
    std::size_t calls = 0;

    void observe(double latest) noexcept {
      calls = std::min<std::size_t>(calls + 1, 32);
      ratio += (latest - ratio) / static_cast<double>(calls);
    }
  };

  /// Batches from 2^(width - 1) to 2^width - 1 rows.
  struct SizeClass {
    int width = 0;
    std::vector<detail::CostEstimate> learnt;  // of each device
    detail::GatherTimes gathering;
    Costs held;                      // that plans are made of; empty until a call was measured
    std::vector<double> unused_for;  // seconds of calls since each device had rows
    std::vector<double> trial;       // seconds of the last call in which each had one row
    std::vector<AloneRatio> alone;   // of each device
    std::size_t untried = done;      // the next device to be tried alone
  };

  static constexpr std::size_t few = 4;  // rows for each device
  static constexpr double dead_band = 1.005;
  static constexpr double much_slower = 2.5;   // times as long as a call
  static constexpr double least_gain = 0.015;  // part of a call that is worth the trial of a device alone
  static constexpr double trials = 0.01;       // part of the time in which devices are tried that have become too slow

  [[noreturn]] static void refuse(std::size_t known, std::size_t devices) {
    detail::refuse_number_of_weights("MeasuredSplit", known, devices);
  }

  /// What is learnt from the shards of a device together: if it runs its rows in several shards, each has a fixed time.
  /// Shards that run at the same time count once.
  FANOUT_INLINE static DeviceShards shards_of(const CallTimes& call, std::size_t device) noexcept;

  /// The device that is faster alone than by the plan with these rows; `none` if there is no such device. A device that
  /// has made no call alone is taken to be as fast as it may be, and to need no time for gathering, so that it is
  /// tried. If it is likely to be much slower, it is tried only if calls may gain much by it.
  FANOUT_INLINE std::size_t best_alone(const SizeClass& of, std::size_t rows,
                                       const std::vector<std::size_t>& whole) const;

  template <class Number>
  static void give_all(std::size_t device, Number rows, std::vector<Number>& to) {
    if (device == none) return;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = i == device ? rows : Number{0};
  }

  /// The costs that plans are made of.
  FANOUT_INLINE Costs costs(std::size_t rows, std::size_t devices) const;

  FANOUT_INLINE const SizeClass* nearest_class(int width) const noexcept;

  /// Goes on to the next device that is to be tried alone. Devices of weight zero are not.
  FANOUT_INLINE void try_next(SizeClass& of, std::size_t devices) const noexcept;

  /// Gives one row to a device that has been without rows for long, since it may have become faster. What that takes is
  /// what was learnt last, also if no plan gained by it. The first time, it may take `gathering` seconds.
  FANOUT_INLINE void try_unused(const SizeClass& of, const Costs& costs, std::vector<std::size_t>& whole,
                                double gathering) const;

  static int width_of(std::size_t rows) noexcept { return static_cast<int>(std::bit_width(rows)); }

  FANOUT_INLINE const SizeClass* find_class(int width) const noexcept;

  FANOUT_INLINE SizeClass& class_of(std::size_t rows, std::size_t devices);

  /// The learnt costs. If the fixed time of a device is not known yet, it is taken to be as large a part of the time as
  /// on the other devices. A device that had no rows yet is taken to be a little better than the best one, so that it
  /// is tried.
  FANOUT_INLINE Costs known_costs(const SizeClass& of) const;

  double guess_of(std::size_t device) const noexcept { return device < guess_.size() ? guess_[device] : 1; }

  /// The rows of each device with which all that have some end at the same time. That is the least time in which the
  /// rows can be done.
  FANOUT_INLINE static std::vector<double> shares(const Costs& costs, double rows);

  /// The time of a batch that is shared out by some costs and takes others.
  static double longest(const Costs& planned, const Costs& real, std::size_t rows) {
    return end_of(whole_rows(planned, rows), real);
  }
  FANOUT_INLINE static double end_of(const std::vector<std::size_t>& whole, const Costs& costs);

  /// The time after which the first device has run its rows.
  FANOUT_INLINE static double first_end_of(const std::vector<std::size_t>& whole, const Costs& costs);

  /// Whole numbers of rows near the shares: each row that is left goes where it ends first.
  FANOUT_INLINE static std::vector<std::size_t> whole_rows(const Costs& costs, std::size_t rows);

  FANOUT_INLINE static Plan plan_of(const std::vector<std::size_t>& rows);

  static constexpr double unused = 1e300;  // seconds per row of a device with weight zero

  std::vector<double> guess_;
  std::vector<SizeClass> classes_;
};
static_assert(Split<MeasuredSplit>);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/plan/measured_split.ipp>
#endif
