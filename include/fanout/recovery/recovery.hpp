// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <fanout/recovery/device_health.hpp>
#include <fanout/recovery/memory_limits.hpp>

namespace fanout { inline namespace v0 { namespace detail {

/// What a model has learnt from the faults of its devices. Thread-safe.
/// `Count` is always std::uint32_t. As a template, this costs nothing to compile in a file that calls no model.
template <class Count = std::uint32_t>
struct Recovery {
  explicit Recovery(std::size_t devices) : health(devices) {}

  DeviceHealth<Count> health;
  MemoryLimits<Count> limits;
};

/// Thrown by a call that has learnt how many rows fit into a device's memory, so that it is made again.
struct LimitLearnt {};

}}}  // namespace fanout::v0::detail
