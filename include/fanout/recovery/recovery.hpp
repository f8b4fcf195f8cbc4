// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/plan/plan.hpp>
#include <fanout/recovery/device_health.hpp>
#include <fanout/recovery/memory_limits.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a model has learnt from the faults of its devices. Thread-safe.
class Recovery {
 public:
  explicit Recovery(std::size_t devices) : health_(devices) {}

  const DeviceHealth& health() const noexcept { return health_; }
  const MemoryLimits& limits() const noexcept { return limits_; }

  /// True if plans may change by what was learnt. Stays true from then on. A call reads this one flag.
  bool changes_plans() const noexcept { return changes_plans_.load(MemoryOrder::relaxed); }

  /// The plan without devices that are left out by now.
  Plan without_left_out(const Plan& plan) const { return health_.leaves_out() ? health_.without_left_out(plan) : plan; }

  /// See DeviceHealth. readmit() forgets how many rows fit into the device's memory, too.
  void note_failure(std::size_t device) noexcept {
    health_.note_failure(device);
    if (health_.leaves_out()) changes_plans_.store(true, MemoryOrder::relaxed);
  }
  void readmit(std::size_t device) noexcept {
    health_.readmit(device);
    limits_.forget(device);
  }

  /// See MemoryLimits.
  void note_limit(std::uint64_t shape, std::size_t device, std::size_t rows) {
    if (limits_.note(shape, device, rows)) changes_plans_.store(true, MemoryOrder::relaxed);
  }
  void forget_limit(std::uint64_t shape, std::size_t device) noexcept { limits_.forget(shape, device); }

 private:
  DeviceHealth health_;
  MemoryLimits limits_;
  Atomic<bool> changes_plans_{false};
};

}}}  // namespace fanout::v0::detail
