// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/recovery/device_health.hpp>

#include <cstddef>

namespace fanout { inline namespace v0 { namespace detail {

/// rows * part / whole: all rows if the part is the whole.
inline std::size_t part_of(std::size_t rows, std::size_t part, std::size_t whole) noexcept {
  if (part == whole) return rows;
  const auto some =
      static_cast<std::size_t>(static_cast<double>(rows) * (static_cast<double>(part) / static_cast<double>(whole)));
  return some < rows ? some : rows;  // of more than 2^53 rows, the quotient may be rounded up
}

template <class LeftOut>
Plan DeviceHealth::of_other_devices(const Plan& plan, const LeftOut& left_out) const {
  return Plan(plan.size(), [&](std::size_t i) {
    const std::size_t device = plan[i].device;
    return Shard{.rows = plan[i].rows, .device = left_out(plan[i]) ? other_than(device, i) : device};
  });
}

void DeviceHealth::note_failure(std::size_t device) noexcept {
  if (failures_[device].fetch_add(1, MemoryOrder::seq_cst) + 1 >= too_often) {
    leaves_out_.store(true, MemoryOrder::seq_cst);
  }
}

void DeviceHealth::readmit(std::size_t device) noexcept {
  failures_[device].store(0, MemoryOrder::seq_cst);
  leaves_out_.store(false, MemoryOrder::seq_cst);
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    if (failures_[i].load(MemoryOrder::seq_cst) >= too_often) leaves_out_.store(true, MemoryOrder::seq_cst);
  }
}

std::size_t DeviceHealth::other_than(std::size_t device, std::size_t shard) const noexcept {
  std::size_t best = device;
  const std::size_t others = failures_.size() - 1;
  for (std::size_t i = 0; i < others; ++i) {
    const std::size_t other = (device + 1 + (shard + i) % others) % failures_.size();
    if (!is_left_out(other) && (best == device || failures(other) < failures(best))) best = other;
  }
  return best;
}

Plan DeviceHealth::without_left_out(const Plan& plan) const {
  // Asked once: another thread may change it meanwhile.
  const InlineArray<std::uint32_t> failed(failures_.size(), [this](std::size_t i) noexcept { return failures(i); });
  const auto left_out = [&failed](const Shard& shard) noexcept { return failed[shard.device] >= too_often; };
  std::size_t kept = 0;  // rows
  for (const Shard& shard : plan) kept += left_out(shard) ? 0 : shard.rows.size();
  if (kept == 0) return of_other_devices(plan, left_out);
  Plan without;
  std::size_t next = 0;
  std::size_t before = 0;  // rows of the shards up to here that are kept
  for (const Shard& shard : plan) {
    if (left_out(shard)) continue;
    before += shard.rows.size();
    const std::size_t end = before + part_of(plan.rows() - kept, before, kept);
    without.add({.rows = {next, end}, .device = shard.device});
    next = end;
  }
  if (plan.is_dealt()) without.deal();
  return without;
}

}}}  // namespace fanout::v0::detail
