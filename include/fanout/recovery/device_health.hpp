// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/inline_array.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How often each device of a model has failed. A device that has failed twice is left out of later plans, unless no
/// other one is left. Thread-safe.
/// `Count` is always std::uint32_t. As a template, this costs nothing to compile in a file that calls no model.
template <class Count = std::uint32_t>
class DeviceHealth {
 public:
  explicit DeviceHealth(std::size_t devices) : failures_(devices) {}

  void note_failure(std::size_t device) noexcept {
    if (failures_[device].fetch_add(1, MemoryOrder::seq_cst) + 1 >= too_often) {
      leaves_out_.store(true, MemoryOrder::seq_cst);
    }
  }
  /// Forgets the failures of a device. A device that fails meanwhile is seen here, or its note comes after this one.
  void readmit(std::size_t device) noexcept {
    failures_[device].store(0, MemoryOrder::seq_cst);
    leaves_out_.store(false, MemoryOrder::seq_cst);
    for (std::size_t i = 0; i < failures_.size(); ++i) {
      if (failures_[i].load(MemoryOrder::seq_cst) >= too_often) leaves_out_.store(true, MemoryOrder::seq_cst);
    }
  }

  std::size_t devices() const noexcept { return failures_.size(); }
  Count failures(std::size_t device) const noexcept { return failures_[device].load(MemoryOrder::relaxed); }
  bool is_left_out(std::size_t device) const noexcept { return failures(device) >= too_often; }
  /// True if any device is left out.
  bool leaves_out() const noexcept { return leaves_out_.load(MemoryOrder::relaxed); }

  /// The device that runs a shard again which failed on another one: of those that are not left out, one with the
  /// fewest failures, for each shard in turn. The same one if there is no other.
  std::size_t other_than(std::size_t device, std::size_t shard) const noexcept {
    std::size_t best = device;
    const std::size_t others = failures_.size() - 1;
    for (std::size_t i = 0; i < others; ++i) {
      const std::size_t other = (device + 1 + (shard + i) % others) % failures_.size();
      if (!is_left_out(other) && (best == device || failures(other) < failures(best))) best = other;
    }
    return best;
  }

  /// The plan without the devices that are left out. The others share their rows, in proportion to their own.
  Plan without_left_out(const Plan& plan) const {
    // Asked once: another thread may change it meanwhile.
    const InlineArray<Count> failed(failures_.size(), [this](std::size_t i) noexcept { return failures(i); });
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

 private:
  /// For plans in which no other device has rows: each shard goes to another device.
  template <class LeftOut>
  Plan of_other_devices(const Plan& plan, const LeftOut& left_out) const {
    return Plan(plan.size(), [&](std::size_t i) {
      const std::size_t device = plan[i].device;
      return Shard{.rows = plan[i].rows, .device = left_out(plan[i]) ? other_than(device, i) : device};
    });
  }

  /// rows * part / whole: all rows if the part is the whole.
  static std::size_t part_of(std::size_t rows, std::size_t part, std::size_t whole) noexcept {
    if (part == whole) return rows;
    const auto some =
        static_cast<std::size_t>(static_cast<double>(rows) * (static_cast<double>(part) / static_cast<double>(whole)));
    return some < rows ? some : rows;  // of more than 2^53 rows, the quotient may be rounded up
  }

  static constexpr Count too_often = 2;

  InlineArray<Atomic<Count>> failures_;
  Atomic<bool> leaves_out_{false};
};

}}}  // namespace fanout::v0::detail
