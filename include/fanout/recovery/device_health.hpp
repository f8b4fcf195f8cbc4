// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/base/inline_array.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/plan/plan.hpp>
#include <fanout/plan/shard.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// How often each device of a model has failed. A device that has failed twice is left out of later plans, unless no
/// other one is left. Thread-safe.
class DeviceHealth {
 public:
  explicit DeviceHealth(std::size_t devices) : failures_(devices) {}

  FANOUT_INLINE void note_failure(std::size_t device) noexcept;
  /// Forgets the failures of a device. A device that fails meanwhile is seen here, or its note comes after this one.
  FANOUT_INLINE void readmit(std::size_t device) noexcept;

  std::size_t devices() const noexcept { return failures_.size(); }
  std::uint32_t failures(std::size_t device) const noexcept { return failures_[device].load(MemoryOrder::relaxed); }
  bool is_left_out(std::size_t device) const noexcept { return failures(device) >= too_often; }
  /// True if any device is left out.
  bool leaves_out() const noexcept { return leaves_out_.load(MemoryOrder::relaxed); }

  /// The device that runs a shard again which failed on another one: of those that are not left out, one with the
  /// fewest failures, for each shard in turn. The same one if there is no other.
  FANOUT_INLINE std::size_t other_than(std::size_t device, std::size_t shard) const noexcept;

  /// The plan without the devices that are left out. The others share their rows, in proportion to their own.
  FANOUT_INLINE Plan without_left_out(const Plan& plan) const;

 private:
  /// For plans in which no other device has rows: each shard goes to another device.
  template <class LeftOut>
  Plan of_other_devices(const Plan& plan, const LeftOut& left_out) const;

  static constexpr std::uint32_t too_often = 2;

  InlineArray<Atomic<std::uint32_t>> failures_;
  Atomic<bool> leaves_out_{false};
};

}}}  // namespace fanout::v0::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/recovery/device_health.ipp>
#endif
