// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/plan/plan.hpp>
#include <fanout/recovery/device_health.hpp>
#include <fanout/recovery/memory_limits.hpp>
#include <fanout/sync/atomic.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a call keeps that may be made again with fewer rows at a time: see Options::shrink_on_out_of_memory.
struct LimitedPlans {
  const Plan planned;         ///< without limits
  const std::uint64_t shape;  ///< of the arguments: see batch_shape()
};

/// What a model has learnt from the faults of its devices. Thread-safe.
class Recovery {
 public:
  explicit Recovery(std::size_t devices) : health_(devices) {}

  const DeviceHealth& health() const noexcept { return health_; }
  const MemoryLimits& limits() const noexcept { return limits_; }

  /// True if plans may change by what was learnt. Stays true from then on.
  const Atomic<bool>& changes_plans() const noexcept { return changes_plans_; }

  /// The plan without devices that are left out by now.
  Plan without_left_out(const Plan& plan) const { return health_.leaves_out() ? health_.without_left_out(plan) : plan; }

  /// The plan of a call within what is known by now: limits, and devices that are left out.
  Plan within_limits(const LimitedPlans& call) const {
    return limits_.applied_to(without_left_out(call.planned), call.shape);
  }

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
