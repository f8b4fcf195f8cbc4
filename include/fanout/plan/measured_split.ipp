// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/plan/measured_split.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>

#include <fanout/plan/even_split.hpp>

namespace fanout { inline namespace v0 {

Plan MeasuredSplit::operator()(std::size_t rows, std::size_t devices) const {
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

void MeasuredSplit::observe(const CallTimes& call) {
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

std::vector<double> MeasuredSplit::weights(std::size_t rows, std::size_t devices) const {
  const Costs costs = this->costs(rows, devices);
  std::vector<double> parts = shares(costs, static_cast<double>(rows));
  if (const SizeClass* const own = find_class(width_of(rows))) {
    give_all(best_alone(*own, rows, whole_rows(costs, rows)), static_cast<double>(rows), parts);
  }
  for (double& part : parts) part /= static_cast<double>(rows);
  return parts;
}

MeasuredSplit::DeviceShards MeasuredSplit::shards_of(const CallTimes& call, std::size_t device) noexcept {
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

std::size_t MeasuredSplit::best_alone(const SizeClass& of, std::size_t rows,
                                      const std::vector<std::size_t>& whole) const {
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

MeasuredSplit::Costs MeasuredSplit::costs(std::size_t rows, std::size_t devices) const {
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

const MeasuredSplit::SizeClass* MeasuredSplit::nearest_class(int width) const noexcept {
  const SizeClass* nearest = nullptr;
  for (const SizeClass& each : classes_) {
    if (each.held.empty()) continue;
    if (nearest == nullptr || std::abs(each.width - width) < std::abs(nearest->width - width)) nearest = &each;
  }
  return nearest;
}

void MeasuredSplit::try_next(SizeClass& of, std::size_t devices) const noexcept {
  if (of.untried == done) return;
  do {
    ++of.untried;
  } while (of.untried < devices && !(guess_of(of.untried) > 0));
  if (of.untried >= devices) of.untried = done;
}

void MeasuredSplit::try_unused(const SizeClass& of, const Costs& costs, std::vector<std::size_t>& whole,
                               double gathering) const {
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

const MeasuredSplit::SizeClass* MeasuredSplit::find_class(int width) const noexcept {
  for (const SizeClass& each : classes_) {
    if (each.width == width) return &each;
  }
  return nullptr;
}

MeasuredSplit::SizeClass& MeasuredSplit::class_of(std::size_t rows, std::size_t devices) {
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

MeasuredSplit::Costs MeasuredSplit::known_costs(const SizeClass& of) const {
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

std::vector<double> MeasuredSplit::shares(const Costs& costs, double rows) {
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

double MeasuredSplit::end_of(const std::vector<std::size_t>& whole, const Costs& costs) {
  double end = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] > 0) end = std::max(end, costs[i].of(static_cast<double>(whole[i])));
  }
  return end;
}

double MeasuredSplit::first_end_of(const std::vector<std::size_t>& whole, const Costs& costs) {
  double end = unused;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i] > 0) end = std::min(end, costs[i].of(static_cast<double>(whole[i])));
  }
  return end;
}

std::vector<std::size_t> MeasuredSplit::whole_rows(const Costs& costs, std::size_t rows) {
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

Plan MeasuredSplit::plan_of(const std::vector<std::size_t>& rows) {
  Plan plan;
  std::size_t first = 0;
  for (std::size_t device = 0; device < rows.size(); ++device) {
    if (rows[device] == 0) continue;
    plan.add({.rows = {first, first + rows[device]}, .device = device});
    first += rows[device];
  }
  return plan;
}

}}  // namespace fanout::v0
