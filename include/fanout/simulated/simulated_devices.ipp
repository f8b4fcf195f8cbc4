// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/simulated/simulated_devices.hpp>

#include <utility>

#include <fanout/memory/transfer.hpp>
#include <fanout/simulated/simulated_memory.hpp>
#include <fanout/simulated/simulated_states.hpp>

namespace fanout { inline namespace v0 { namespace detail {

SimulatedOptionsCheck::SimulatedOptionsCheck(const SimulatedDeviceOptions& options, std::size_t device)
    : device_(device) {
  check(options.rows_per_second > 0, "rows_per_second", "a number above 0", options.rows_per_second);
  check_time(options.launch, "launch");
  check(options.bandwidth > 0, "bandwidth", "a number of bytes per second above 0", options.bandwidth);
  check_time(options.latency, "latency");
  check(options.memory > 0, "memory", "at least one byte", options.memory);
  check(options.failures > 0, "failures", "at least 1; without failures, leave .fail_at at 0", options.failures);
  const SimulatedDeviceOptions::SlowDown& slow = options.slow_down;
  check_time(slow.at, "slow_down.at");
  check(slow.until.nanoseconds() >= slow.at.nanoseconds(), "slow_down.until", "a time that is not before .at",
        slow.until.nanoseconds(), " ns");
  check(slow.factor > 0 && slow.factor < __builtin_inf(), "slow_down.factor", "a finite number above 0", slow.factor);
  check(options.noise >= 0 && options.noise < 1, "noise", "at least 0 and less than 1", options.noise);
}

}}}  // namespace fanout::v0::detail
namespace fanout { inline namespace v0 {

DeviceSet<SimulatedDevice> simulated_devices(const std::vector<SimulatedDeviceOptions>& options) {
  for (std::size_t i = 0; i < options.size(); ++i) detail::SimulatedOptionsCheck(options[i], i);
  backend::declare_memory("sim", backend::simulated_memory_operations);
  auto* const simulation = options.empty() ? nullptr : new detail::Simulation;
  std::vector<SimulatedDevice> devices;
  for (std::size_t i = 0; i < options.size(); ++i) {
    devices.emplace_back(detail::simulated_states.add(*simulation, i, options[i]));
  }
  return DeviceSet<SimulatedDevice>(std::move(devices));
}

}}  // namespace fanout::v0
