// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/cost_estimate.hpp>
#include <fanout/plan/even_split.hpp>
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
  Plan operator()(std::size_t rows, std::size_t devices) const {
    const Costs costs = this->costs(rows, devices);
    if (rows == 0) return EvenSplit{}(rows, devices);
    const SizeClass* const own = find_class(width_of(rows));
    if (own != nullptr && own->untried < devices) return {{.rows = {0, rows}, .device = own->untried}};
    std::vector<std::size_t> whole = whole_rows(costs, rows);
    if (own != nullptr) {
      const std::size_t alone = best_alone(*own, rows, whole);
      give_all(alone, rows, whole);
      const double gathering = own->gathering.together(static_cast<double>(rows)).value_or(0);
      try_unused(*own, costs, whole, alone == none ? 0 : gathering);
    }
    return plan_of(whole);
  }

  /// Guesses the weights from the kinds of the devices. A model calls this when it is made.
  void begin(const DeviceId* devices, std::size_t count) {
    if (!guess_.empty()) return;
    for (std::size_t i = 0; i < count; ++i) guess_.push_back(devices[i].kind == DeviceKind("host") ? 1 : 10);
  }

  /// Learns from a call. Throws std::bad_alloc.
  void observe(const CallTimes& call) {
    const std::size_t rows = call.plan->rows();
    if (rows == 0) return;
    const bool is_new = find_class(width_of(rows)) == nullptr;
    SizeClass& own = class_of(rows, call.device_count);
    if (!is_new) try_next(own, call.device_count);
    for (std::size_t device = 0; device < call.device_count; ++device) {
      const DeviceShards shards = shards_of(call, device);
      if (shards.rows == 0) continue;
      own.learnt[device].observe(static_cast<double>(shards.rows), shards.seconds);
      if (shards.rows == rows)
        own.alone[device].observe(shards.seconds / own.learnt[device].cost().of(static_cast<double>(rows)));
    }
    for (double& unused_for : own.unused_for) {
      unused_for += own.untried == done ? 1e-9 * static_cast<double>(call.joined - call.planned) : 0;
    }
    for (const Shard& shard : *call.plan) {
      if (shard.rows.size() == 0) continue;
      own.unused_for[shard.device] = 0;
      own.trial[shard.device] = shard.rows.size() == 1 ? 1e-9 * static_cast<double>(call.ended - call.idle) : 0;
    }
    const Costs learnt = known_costs(own);
    if (own.held.empty() || longest(own.held, learnt, rows) > dead_band * longest(learnt, learnt, rows)) {
      own.held = learnt;
    }
    own.gathering.observe(call, whole_rows(own.held, rows));
  }

  /// The share of each device in a batch of `rows` rows; `rows` must be at least 1. The shares add up to 1. Throws
  /// InvalidArgument if the policy has learnt of another number of devices, or began with another number of weights.
  std::vector<double> weights(std::size_t rows, std::size_t devices) const {
    const Costs costs = this->costs(rows, devices);
    std::vector<double> parts = shares(costs, static_cast<double>(rows));
    if (const SizeClass* const own = find_class(width_of(rows))) {
      give_all(best_alone(*own, rows, whole_rows(costs, rows)), static_cast<double>(rows), parts);
    }
    for (double& part : parts) part /= static_cast<double>(rows);
    return parts;
  }

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
  static DeviceShards shards_of(const CallTimes& call, std::size_t device) noexcept {
    std::size_t rows = 0;
    std::int64_t sum = 0;
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    for (std::size_t i = 0; i < call.plan->size(); ++i) {
      if ((*call.plan)[i].device != device || (*call.plan)[i].rows.empty()) continue;
      rows += (*call.plan)[i].rows.size();
      sum += call.shards[i].ended - call.shards[i].began;
      first = std::min(first, call.shards[i].began);
      last = std::max(last, call.shards[i].ended);
    }
    return {rows, 1e-9 * static_cast<double>(std::min(sum, last - first))};
  }

  /// The device that is faster alone than by the plan with these rows; `none` if there is no such device. A device that
  /// has made no call alone is taken to be as fast as it may be, and to need no time for gathering, so that it is
  /// tried. If it is likely to be much slower, it is tried only if calls may gain much by it.
  std::size_t best_alone(const SizeClass& of, std::size_t rows, const std::vector<std::size_t>& whole) const {
    const auto count = static_cast<double>(rows);
    const std::optional<double> together = of.gathering.together(count);
    if (!together) return none;
    const Costs learnt = known_costs(of);
    double end = (end_of(whole, learnt) + *together) / dead_band;
    // A device takes at least as long for all rows as for its own.
    const bool may_gain = first_end_of(whole, learnt) < (1 - least_gain) * end;
    std::size_t best = none;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (!(guess_of(i) > 0) || !of.learnt[i].is_known()) continue;
      const std::optional<double> alone = of.gathering.alone(i, count);
      const double likely = of.alone[i].ratio * learnt[i].of(count) + alone.value_or(0);
      const double least = of.learnt[i].least_of(count, likely > much_slower * end);
      const double takes = may_gain && !alone ? std::min(likely, least) : likely;
      if (takes >= end) continue;
      best = i;
      end = takes;
    }
    return best;
  }

  template <class Number>
  static void give_all(std::size_t device, Number rows, std::vector<Number>& to) {
    if (device == none) return;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = i == device ? rows : Number{0};
  }

  /// The costs that plans are made of.
  Costs costs(std::size_t rows, std::size_t devices) const {
    const SizeClass* const nearest = nearest_class(width_of(rows));
    if (nearest != nullptr) {
      if (nearest->held.size() != devices) refuse(nearest->held.size(), devices);
      return nearest->held;
    }
    if (!guess_.empty() && guess_.size() != devices) refuse(guess_.size(), devices);
    Costs guessed(devices, {.per_row = 1});
    for (std::size_t i = 0; i < guess_.size(); ++i) guessed[i].per_row = guess_[i] > 0 ? 1 / guess_[i] : unused;
    return guessed;
  }

  const SizeClass* nearest_class(int width) const noexcept {
    const SizeClass* nearest = nullptr;
    for (const SizeClass& each : classes_) {
      if (each.held.empty()) continue;
      if (nearest == nullptr || std::abs(each.width - width) < std::abs(nearest->width - width)) nearest = &each;
    }
    return nearest;
  }

  /// Goes on to the next device that is to be tried alone. Devices of weight zero are not.
  void try_next(SizeClass& of, std::size_t devices) const noexcept {
    if (of.untried == done) return;
    do {
      ++of.untried;
    } while (of.untried < devices && !(guess_of(of.untried) > 0));
    if (of.untried >= devices) of.untried = done;
  }

  /// Gives one row to a device that has been without rows for long, since it may have become faster. What that takes is
  /// what was learnt last, also if no plan gained by it. The first time, it may take `gathering` seconds.
  void try_unused(const SizeClass& of, const Costs& costs, std::vector<std::size_t>& whole, double gathering) const {
    const double call = end_of(whole, costs);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] > 0 || !(guess_of(i) > 0)) continue;
      const double takes =
          std::max({call, costs[i].of(1), of.learnt[i].cost().of(1), of.trial[i] > 0 ? of.trial[i] : gathering});
      if (takes > trials / static_cast<double>(whole.size()) * of.unused_for[i]) continue;
      --*std::max_element(whole.begin(), whole.end());
      ++whole[i];
      return;
    }
  }

  static int width_of(std::size_t rows) noexcept { return static_cast<int>(std::bit_width(rows)); }

  const SizeClass* find_class(int width) const noexcept {
    for (const SizeClass& each : classes_) {
      if (each.width == width) return &each;
    }
    return nullptr;
  }

  SizeClass& class_of(std::size_t rows, std::size_t devices) {
    const int width = width_of(rows);
    if (const SizeClass* const known = find_class(width)) return const_cast<SizeClass&>(*known);
    SizeClass made{.width = width,
                   .learnt = std::vector<detail::CostEstimate>(devices),
                   .gathering = detail::GatherTimes(devices),
                   .held = {},
                   .unused_for = std::vector<double>(devices),
                   .trial = std::vector<double>(devices),
                   .alone = std::vector<AloneRatio>(devices)};
    if (const SizeClass* const nearest = nearest_class(width)) {
      for (std::size_t i = 0; i < devices; ++i) made.learnt[i].guess(nearest->held[i]);
    }
    // With few rows, a device that gets one more may take twice as long, or as long as before. So each shows that.
    if (rows <= few * devices) {
      made.untried = none;
      try_next(made, devices);
    }
    classes_.push_back(std::move(made));
    return classes_.back();
  }

  /// The learnt costs. If the fixed time of a device is not known yet, it is taken to be as large a part of the time as
  /// on the other devices. A device that had no rows yet is taken to be a little better than the best one, so that it
  /// is tried.
  Costs known_costs(const SizeClass& of) const {
    double best = unused;
    double part = 0;
    double parts = 0;
    for (std::size_t i = 0; i < of.learnt.size(); ++i) {
      const detail::CostEstimate& learnt = of.learnt[i];
      if (learnt.is_known()) best = std::min(best, learnt.cost().per_row * guess_of(i));
      if (!learnt.knows_fixed()) continue;
      part += learnt.fixed_part();
      ++parts;
    }
    Costs costs;
    for (std::size_t i = 0; i < of.learnt.size(); ++i) {
      const detail::CostEstimate& learnt = of.learnt[i];
      const detail::ShardCost untried{.per_row = guess_of(i) > 0 ? 0.9 * best / guess_of(i) : unused};
      const bool is_like_others = !learnt.knows_fixed() && parts > 0;
      costs.push_back(!learnt.is_known() ? untried
                      : is_like_others   ? learnt.with_fixed_part(part / parts)
                                         : learnt.cost());
    }
    return costs;
  }

  double guess_of(std::size_t device) const noexcept { return device < guess_.size() ? guess_[device] : 1; }

  /// The rows of each device with which all that have some end at the same time. That is the least time in which the
  /// rows can be done.
  static std::vector<double> shares(const Costs& costs, double rows) {
    double end = 0;
    double speed = 0;   // of the devices that take part, in rows per second
    double missed = 0;  // rows that they do not compute in their fixed times
    std::vector<std::size_t> order(costs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&costs](std::size_t a, std::size_t b) { return costs[a].fixed < costs[b].fixed; });
    for (const std::size_t i : order) {
      const detail::ShardCost& cost = costs[i];
      if (speed > 0 && cost.fixed >= end) break;
      speed += 1 / cost.per_row;
      missed += cost.fixed / cost.per_row;
      end = (rows + missed) / speed;
    }
    std::vector<double> parts;
    for (const detail::ShardCost& cost : costs) parts.push_back(std::max(0.0, (end - cost.fixed) / cost.per_row));
    return parts;
  }

  /// The time of a batch that is shared out by some costs and takes others.
  static double longest(const Costs& planned, const Costs& real, std::size_t rows) {
    return end_of(whole_rows(planned, rows), real);
  }
  static double end_of(const std::vector<std::size_t>& whole, const Costs& costs) {
    double end = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] > 0) end = std::max(end, costs[i].of(static_cast<double>(whole[i])));
    }
    return end;
  }

  /// The time after which the first device has run its rows.
  static double first_end_of(const std::vector<std::size_t>& whole, const Costs& costs) {
    double end = unused;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] > 0) end = std::min(end, costs[i].of(static_cast<double>(whole[i])));
    }
    return end;
  }

  /// Whole numbers of rows near the shares: each row that is left goes where it ends first.
  static std::vector<std::size_t> whole_rows(const Costs& costs, std::size_t rows) {
    std::vector<std::size_t> whole;
    std::size_t left = rows;
    for (const double part : shares(costs, static_cast<double>(rows))) {
      whole.push_back(part < static_cast<double>(left) ? static_cast<std::size_t>(part) : left);
      left -= whole.back();
    }
    for (; left > 0; --left) {
      std::size_t first = 0;
      for (std::size_t i = 1; i < costs.size(); ++i) {
        const auto end = [&](std::size_t device) { return costs[device].of(static_cast<double>(whole[device]) + 1); };
        if (end(i) < end(first)) first = i;
      }
      ++whole[first];
    }
    return whole;
  }

  static Plan plan_of(const std::vector<std::size_t>& rows) {
    Plan plan;
    std::size_t first = 0;
    for (std::size_t device = 0; device < rows.size(); ++device) {
      if (rows[device] == 0) continue;
      plan.add({.rows = {first, first + rows[device]}, .device = device});
      first += rows[device];
    }
    return plan;
  }

  static constexpr double unused = 1e300;  // seconds per row of a device with weight zero

  std::vector<double> guess_;
  std::vector<SizeClass> classes_;
};
static_assert(Split<MeasuredSplit>);

}}  // namespace fanout::v0
