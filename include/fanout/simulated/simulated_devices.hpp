// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/duration.hpp>
#include <fanout/base/error.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/simulated/simulated_device.hpp>
#include <fanout/simulated/simulated_device_options.hpp>
#include <fanout/simulated/simulated_state.hpp>

namespace fanout { inline namespace v0 {

namespace detail {

/// Checks the options of one simulated device. Throws InvalidArgument.
class SimulatedOptionsCheck {
 public:
  FANOUT_INLINE SimulatedOptionsCheck(const SimulatedDeviceOptions& options, std::size_t device);

 private:
  void check_time(const Duration& time, const char* field) const {
    check(time.nanoseconds() >= 0, field, "a time that is not negative", time.nanoseconds(), " ns");
  }

  template <class Number>
  void check(bool holds, const char* field, const char* expected, Number found, const char* unit = "") const {
    if (holds) return;
    throw InvalidArgument(explain({.what = std::string("invalid .") + field + " of device " + std::to_string(device_),
                                   .where = "simulated_devices",
                                   .expected = expected,
                                   .found = std::to_string(found) + unit}));
  }

  std::size_t device_;
};

}  // namespace detail

/// Makes one simulated device for each element, with ids that no other one has, and with a clock that begins at 0. Time
/// is virtual: `devices[0].time()`. The calling thread runs all shards. A device's state stays until the process ends,
/// since tensors may outlive it: less than 1 KiB. Throws InvalidArgument for an invalid option, and InvalidDeviceId if
/// there is no element.
FANOUT_INLINE DeviceSet<SimulatedDevice> simulated_devices(const std::vector<SimulatedDeviceOptions>& options);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/simulated/simulated_devices.ipp>
#endif
