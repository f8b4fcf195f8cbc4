// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <fanout/plan/call_times.hpp>
#include <fanout/plan/cost_estimate.hpp>
#include <fanout/plan/shard.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// Learns what calls take besides their shards, for example to copy results from other memories: if all devices of a
/// plan run them, and if one device runs them alone. Copies over different links overlap or wait for each other, so
/// what one device adds to a call cannot be told.
class GatherTimes {
 public:
  explicit GatherTimes(std::size_t devices) : alone_(devices) {}

  /// Learns from a call. `planned` are the rows that the policy now gives to each device.
  void observe(const CallTimes& call, const std::vector<std::size_t>& planned) {
    if (!has_same_devices(planned)) together_ = {};
    planned_ = planned;
    if (call.asynchronous && call.gatherer == 0) return;  // its result was dropped
    std::vector<std::size_t> ran(planned.size());
    for (const Shard& shard : *call.plan) ran[shard.device] += shard.rows.size();
    const auto rows = static_cast<double>(call.plan->rows());
    const double seconds = 1e-9 * static_cast<double>(call.planned + call.ended - call.joined - call.idle);
    for (std::size_t i = 0; i < ran.size(); ++i) {
      if (ran[i] == call.plan->rows()) alone_[i].observe(rows, seconds);
    }
    if (ran_as_planned(ran)) together_.observe(rows, seconds);
  }

  /// The seconds for so many rows; none before a call has been measured.
  std::optional<double> together(double rows) const noexcept { return of(together_, rows); }
  std::optional<double> alone(std::size_t device, double rows) const noexcept { return of(alone_[device], rows); }

 private:
  static std::optional<double> of(const CostEstimate& estimate, double rows) noexcept {
    return estimate.is_known() ? std::optional(estimate.cost().of(rows)) : std::nullopt;
  }

  bool has_same_devices(const std::vector<std::size_t>& planned) const noexcept {
    if (planned_.size() != planned.size()) return false;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if ((planned[i] > 0) != (planned_[i] > 0)) return false;
    }
    return true;
  }

  /// True if each device had the rows that were planned for it, but for a few.
  bool ran_as_planned(const std::vector<std::size_t>& ran) const noexcept {
    for (std::size_t i = 0; i < ran.size(); ++i) {
      const std::size_t few = 1 + planned_[i] / 50;
      if ((planned_[i] > 0) != (ran[i] > 0) || ran[i] > planned_[i] + few || ran[i] + few < planned_[i]) return false;
    }
    return true;
  }

  CostEstimate together_;
  std::vector<CostEstimate> alone_;
  std::vector<std::size_t> planned_;
};

}}}  // namespace fanout::v0::detail
