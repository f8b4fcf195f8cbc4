// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/plan/call_times.hpp>
#include <fanout/plan/even_split.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/split.hpp>
#include <fanout/plan/weighted_split.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// The time of a shard on one device: `fixed + rows * per_row` seconds.
struct ShardCost {
  double fixed = 0;
  double per_row = 0;  ///< 0: unknown

  double of(double rows) const noexcept { return fixed + rows * per_row; }
};

/// The time of a shard on one device, and of the copy of its results when all shards have ended.
struct DeviceCost {
  ShardCost shard;
  ShardCost copy = {};
};

/// Learns the cost of the shards of one device from their rows and seconds.
///
/// A small deviation is averaged away: the mean of the last `memory` shards counts. A large one is believed at once,
/// since then the device has become faster or slower, or the shard has another size than the ones before. In the latter
/// case the two sizes tell how much of the time does not depend on the rows.
class CostEstimate {
 public:
  const ShardCost& cost() const noexcept { return cost_; }
  bool is_known() const noexcept { return cost_.per_row > 0; }

  /// True if shards of two sizes have told which part of the time is fixed.
  bool knows_fixed() const noexcept { return knows_fixed_; }
  /// That part, at the size of the last shards.
  double fixed_part() const noexcept { return seconds_ > 0 ? std::min(1.0, cost_.fixed / seconds_) : 0; }
  /// The cost if so large a part of the time of the last shards is fixed.
  ShardCost with_fixed_part(double part) const noexcept {
    if (rows_ <= 0) return cost_;
    const double seconds = cost_.of(rows_);
    return {.fixed = part * seconds, .per_row = std::max(1 - part, 0.01) * seconds / rows_};
  }

  /// Begins with a guess, which the first shard corrects.
  void guess(const ShardCost& cost) noexcept {
    cost_ = cost;
    shards_ = 0;
  }

  void observe(double rows, double seconds) noexcept {
    if (rows <= 0) return;
    seconds = std::max(seconds, 1e-9);  // a clock may see no time pass
    const bool resized = rows_ > 0 && (rows > 1.25 * rows_ || 1.25 * rows < rows_);
    knows_fixed_ = knows_fixed_ || resized;
    const double fixed = resized ? fixed_of(rows, seconds) : cost_.fixed;
    const double times = seconds / cost_.of(rows);
    if (!is_known()) {
      cost_ = {.per_row = seconds / rows};
      shards_ = 1;
    } else if (fixed != cost_.fixed) {
      cost_.fixed = fixed;
      cost_.per_row = per_row(rows, seconds);
      shards_ = 1;
    } else if (shards_ == 0 || times > large || times * large < 1) {
      cost_ = {.fixed = times * cost_.fixed, .per_row = times * cost_.per_row};
      shards_ = 1;
    } else {
      const double part = 1.0 / static_cast<double>(std::min(++shards_, memory));
      cost_.per_row += part * (per_row(rows, seconds) - cost_.per_row);
    }
    // Sizes that creep away do not count in the mean, so that they become another size.
    if (!resized && of_size_ > 0 && std::abs(rows - rows_) > same_size * rows_) return;
    of_size_ = resized ? 1 : std::min(of_size_ + 1, memory);
    rows_ += (rows - rows_) / static_cast<double>(of_size_);
    seconds_ += (seconds - seconds_) / static_cast<double>(of_size_);
  }

 private:
  static constexpr double large = 1.25;
  static constexpr double same_size = 0.05;  // relative
  static constexpr std::size_t memory = 32;
  static constexpr double noise = 0.06;  // relative; a shard's time may deviate so much without a reason

  double per_row(double rows, double seconds) const noexcept {
    return std::max(seconds - cost_.fixed, 0.01 * seconds) / rows;
  }

  /// The fixed time by the line through the shards before and this one of another size. The known one, if the line says
  /// no more than noise could.
  double fixed_of(double rows, double seconds) const noexcept {
    const double slope = (seconds - seconds_) / (rows - rows_);
    const double fixed = seconds - slope * rows;
    const double uncertain = noise * (seconds * rows_ + seconds_ * rows) / std::abs(rows - rows_);
    return slope > 0 && std::abs(fixed - cost_.fixed) > uncertain ? std::max(fixed, 0.0) : cost_.fixed;
  }

  ShardCost cost_;
  std::size_t shards_ = 0;   // since the last large deviation
  double rows_ = 0;          // mean of the last shards of about one size
  double seconds_ = 0;       // as well
  std::size_t of_size_ = 0;  // how many these are
  bool knows_fixed_ = false;
};

}  // namespace detail

/// Learns the speed of each device, and gives it so many rows that all devices end at the same time:
///
///     fanout::ParallelModel model{net, host_devices(1) | cuda_devices(), {.split = fanout::MeasuredSplit{}}};
///
/// - A shard is taken to cost a fixed time, and a time for each row. Both are learnt for each device, and for each size
///   of the batch up to a factor of two. A device gets no rows if its fixed time is above the time of the others.
/// - The copies of results to the others are learnt, too. A device gets no rows if they take longer than calls gain by it.
/// - A large change is believed after one call. Small changes are averaged over up to 32 calls. A plan changes only if
///   calls gain 0.5 % by it.
/// - A device without rows gets one now and then, in case it has become faster. That takes 1 % of the time at most.
/// - Batches of at most four rows for each device are first tried on each device alone.
/// - Before the first call, weights are guessed: a device of another kind than the host's counts as ten host devices.
///
/// Each model learns for itself, with its own copy of the policy. ParallelModel::split() returns that copy. Not
/// thread-safe by itself; a model calls it by one thread at a time.
class MeasuredSplit {
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
    if (own != nullptr) try_unused(*own, costs, whole);
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
    for (std::size_t device = 0; device < call.device_count; ++device) learn(own, call, device);
    for (double& unused_for : own.unused_for) {
      unused_for += own.untried == done ? 1e-9 * static_cast<double>(call.joined - call.planned) : 0;
    }
    for (const Shard& shard : *call.plan) {
      if (shard.rows.size() > 0) own.unused_for[shard.device] = 0;
    }
    const Costs learnt = known_costs(own);
    if (own.held.empty() || longest(own.held, learnt, rows) > dead_band * longest(learnt, learnt, rows)) {
      own.held = learnt;
    }
  }

  /// The share of each device in a batch of `rows` rows; `rows` must be at least 1. The shares add up to 1. Throws
  /// InvalidArgument if the policy has learnt of another number of devices, or began with another number of weights.
  std::vector<double> weights(std::size_t rows, std::size_t devices) const {
    std::vector<double> parts = shares(without_costly_copies(costs(rows, devices), rows), static_cast<double>(rows));
    for (double& part : parts) part /= static_cast<double>(rows);
    return parts;
  }

  /// A policy that keeps the present weights of batches of `rows` rows. Throws InvalidArgument as weights() does.
  WeightedSplit frozen(std::size_t rows, std::size_t devices) const { return WeightedSplit(weights(rows, devices)); }

 private:
  using Costs = std::vector<detail::DeviceCost>;

  static constexpr std::size_t none = ~std::size_t{0};  // before the first device
  static constexpr std::size_t done = none - 1;

  /// Batches from 2^(width - 1) to 2^width - 1 rows.
  struct SizeClass {
    int width = 0;
    std::vector<detail::CostEstimate> learnt;  // of each device
    std::vector<detail::CostEstimate> copies;  // of the results of each device
    Costs held;                                // that plans are made of; empty until a call was measured
    std::vector<double> unused_for;            // seconds of calls since each device had rows
    std::size_t untried = done;                // the next device to be tried alone
  };

  static constexpr std::size_t few = 4;  // rows for each device
  static constexpr double dead_band = 1.005;
  static constexpr double trials = 0.01;  // part of the time in which devices are tried that have become too slow

  [[noreturn]] static void refuse(std::size_t known, std::size_t devices) {
    detail::refuse_number_of_weights("MeasuredSplit", known, devices);
  }

  /// Learns from the shards of a device together: if it runs its rows in several shards, each has a fixed time. Shards
  /// that run at the same time count once. Gathering takes its time for the bytes that it copies from devices.
  static void learn(SizeClass& own, const CallTimes& call, std::size_t device) noexcept {
    std::size_t rows = 0;
    std::int64_t sum = 0;
    std::int64_t first = INT64_MAX;
    std::int64_t last = 0;
    double bytes = 0;
    double all_bytes = 0;
    for (std::size_t i = 0; i < call.plan->size(); ++i) {
      all_bytes += static_cast<double>(call.shards[i].bytes_out);
      if ((*call.plan)[i].device != device || (*call.plan)[i].rows.empty()) continue;
      bytes += static_cast<double>(call.shards[i].bytes_out);
      rows += (*call.plan)[i].rows.size();
      sum += call.shards[i].ended - call.shards[i].began;
      first = std::min(first, call.shards[i].began);
      last = std::max(last, call.shards[i].ended);
    }
    if (rows == 0) return;
    const auto count = static_cast<double>(rows);
    own.learnt[device].observe(count, 1e-9 * static_cast<double>(std::min(sum, last - first)));
    if (bytes <= 0 || call.asynchronous) return;
    own.copies[device].observe(count, 1e-9 * static_cast<double>(call.ended - call.joined) * (bytes / all_bytes));
  }

  /// The costs that plans are made of.
  Costs costs(std::size_t rows, std::size_t devices) const {
    const SizeClass* const nearest = nearest_class(width_of(rows));
    if (nearest != nullptr) {
      if (nearest->held.size() != devices) refuse(nearest->held.size(), devices);
      return nearest->held;
    }
    if (!guess_.empty() && guess_.size() != devices) refuse(guess_.size(), devices);
    Costs guessed(devices, {.shard = {.per_row = 1}});
    for (std::size_t i = 0; i < guess_.size(); ++i) guessed[i].shard.per_row = guess_[i] > 0 ? 1 / guess_[i] : unused;
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
  /// what was learnt last, also if no plan gained by it.
  void try_unused(const SizeClass& of, const Costs& costs, std::vector<std::size_t>& whole) const {
    const double call = end_of(whole, costs);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] > 0 || !(guess_of(i) > 0)) continue;
      const double takes =
          std::max({call, costs[i].shard.of(1), of.learnt[i].cost().of(1)}) + of.copies[i].cost().of(1);
      if (takes > trials * of.unused_for[i]) continue;
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
                   .copies = std::vector<detail::CostEstimate>(devices),
                   .held = {},
                   .unused_for = std::vector<double>(devices)};
    if (const SizeClass* const nearest = nearest_class(width)) {
      for (std::size_t i = 0; i < devices; ++i) {
        made.learnt[i].guess(nearest->held[i].shard);
        made.copies[i].guess(nearest->held[i].copy);
      }
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
      costs.push_back({.shard = !learnt.is_known() ? untried
                                : is_like_others   ? learnt.with_fixed_part(part / parts)
                                                   : learnt.cost(),
                       .copy = of.copies[i].cost()});
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
              [&costs](std::size_t a, std::size_t b) { return costs[a].shard.fixed < costs[b].shard.fixed; });
    for (const std::size_t i : order) {
      const detail::ShardCost& cost = costs[i].shard;
      if (speed > 0 && cost.fixed >= end) break;
      speed += 1 / cost.per_row;
      missed += cost.fixed / cost.per_row;
      end = (rows + missed) / speed;
    }
    std::vector<double> parts;
    for (const detail::DeviceCost& cost : costs) {
      parts.push_back(std::max(0.0, (end - cost.shard.fixed) / cost.shard.per_row));
    }
    return parts;
  }

  /// The costs, with those of devices `unused` whose results take longer to copy than the call gains by them: leaves
  /// out the one with the longest copies as long as the call gains by that. Never worse than the best device alone.
  /// Results of several devices are taken to be copied one after the other.
  static Costs without_costly_copies(Costs costs, std::size_t rows) {
    const auto copy = [&](std::size_t i) { return costs[i].copy.of(static_cast<double>(rows)); };
    const auto alone = [&](std::size_t i) { return costs[i].shard.of(static_cast<double>(rows)) + copy(i); };
    std::size_t best = 0;
    std::size_t taking_part = 0;
    std::vector<std::size_t> copying;  // of these; the longest copies last
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (alone(i) < alone(best)) best = i;
      if (costs[i].shard.per_row >= unused) continue;
      ++taking_part;
      if (copy(i) > 0) copying.push_back(i);
    }
    if (copying.empty()) return costs;
    std::sort(copying.begin(), copying.end(), [&copy](std::size_t a, std::size_t b) { return copy(a) < copy(b); });
    constexpr detail::ShardCost left_out{.fixed = unused, .per_row = unused};
    Costs some = costs;
    double end = end_of(whole_rows_at(some, rows), costs);
    for (; !copying.empty() && taking_part > 1; copying.pop_back(), --taking_part) {
      Costs fewer = some;
      fewer[copying.back()].shard = left_out;
      const double sooner = end_of(whole_rows_at(fewer, rows), costs);
      if (sooner >= end) break;
      end = sooner;
      some = std::move(fewer);
    }
    for (std::size_t i = 0; i < some.size() && alone(best) < end; ++i) {
      some[i].shard = i == best ? costs[i].shard : left_out;
    }
    return some;
  }

  /// The time of a batch that is shared out by some costs and takes others.
  static double longest(const Costs& planned, const Costs& real, std::size_t rows) {
    return end_of(whole_rows(planned, rows), real);
  }
  static double end_of(const std::vector<std::size_t>& whole, const Costs& costs) {
    double end = 0;
    double copies = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (whole[i] == 0) continue;
      end = std::max(end, costs[i].shard.of(static_cast<double>(whole[i])));
      copies += costs[i].copy.of(static_cast<double>(whole[i]));
    }
    return end + copies;
  }

  static std::vector<std::size_t> whole_rows(const Costs& costs, std::size_t rows) {
    return whole_rows_at(without_costly_copies(costs, rows), rows);
  }

  /// Whole numbers of rows near the shares: each row that is left goes where it ends first.
  static std::vector<std::size_t> whole_rows_at(const Costs& costs, std::size_t rows) {
    std::vector<std::size_t> whole;
    std::size_t left = rows;
    for (const double part : shares(costs, static_cast<double>(rows))) {
      whole.push_back(part < static_cast<double>(left) ? static_cast<std::size_t>(part) : left);
      left -= whole.back();
    }
    for (; left > 0; --left) {
      std::size_t first = 0;
      for (std::size_t i = 1; i < costs.size(); ++i) {
        const auto end = [&](std::size_t device) {
          return costs[device].shard.of(static_cast<double>(whole[device]) + 1);
        };
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
