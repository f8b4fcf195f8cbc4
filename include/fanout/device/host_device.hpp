// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <initializer_list>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/device/device.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/indices.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/waiting/wait_policy.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// One or more cores of the host. Host devices share one memory. Made by host_devices().
class HostDevice {
 public:
  explicit HostDevice(backend::Worker& worker, Waiting wait = Adaptive()) noexcept : worker_(&worker), wait_(wait) {}

  const DeviceId& id() const noexcept { return worker_->id(); }
  backend::Memory memory() const noexcept { return {}; }
  backend::Worker& worker() const noexcept { return *worker_; }

  /// The cores that the device's thread may run on, as the kernel numbers them: its own cores if bound(), otherwise all
  /// cores of the process. Threads that `forward` starts inherit them.
  const std::vector<int>& cores() const noexcept { return worker_->cores(); }
  /// True if the device's thread is bound to cores of its own.
  bool bound() const noexcept { return worker_->bound(); }

  /// The wait rules of calls that use this value of the device. The device's thread waits by them for the next call,
  /// and a call waits by them for the device.
  const WaitRules& wait_rules() const noexcept { return wait_.rules(); }

  struct Entered {
    ~Entered() {}  // NOLINT(modernize-use-equals-default): not trivial, so that an unused variable is no warning
  };
  /// Work on the host runs on the thread that entered, and is done when it returns.
  Entered enter() const noexcept { return {}; }
  void synchronize() const noexcept {}

  /// The devices of host_devices(), as a vector.
  [[gnu::cold]] FANOUT_INLINE static std::vector<HostDevice> visible();

  friend bool operator==(const HostDevice& a, const HostDevice& b) noexcept { return a.worker_ == b.worker_; }

 private:
  backend::Worker* worker_;
  Waiting wait_;
};

/// Options of host_devices().
struct HostDeviceOptions {
  /// The number of devices. 0: as many as host_devices() makes.
  int count = 0;
  /// Cores per device. 0: an equal share of the process's cores, at least one.
  int cores_each = 0;
  /// True if each device's thread is bound to its cores. Ignored if the devices need more cores than the process has,
  /// if a CPU quota limits the process, and with FANOUT_PIN=off in the environment.
  bool pin = true;
  /// The wait policy: Adaptive, Spin, Park, or your own. Threads that are not bound to cores sleep at once.
  Waiting wait = Adaptive();
};

namespace detail {

/// An upper limit for the number of host devices, to catch mistakes.
inline constexpr int most_host_devices = 4096;

}  // namespace detail

/// The number of host devices that host_devices() makes: FANOUT_HOST_DEVICES if it is set, otherwise one per core that
/// this process may use. The affinity mask and the CPU quota of the control group limit these. At most 4096. Throws
/// InvalidArgument if FANOUT_HOST_DEVICES is not a whole number from 1 to 4096.
[[gnu::cold]] FANOUT_INLINE int host_device_count();

/// Makes the host devices `host:0`, `host:1`, ..., which share the process's cores. Starts no thread: a device's first
/// task does. Throws InvalidDeviceId if the count is negative or above 4096, or if `cores_each` is negative. Throws
/// InvalidArgument if FANOUT_HOST_DEVICES or FANOUT_PIN has an invalid value.
[[gnu::cold]] FANOUT_INLINE DeviceSet<HostDevice> host_devices(const HostDeviceOptions& options);

/// Makes one host device per core that this process may use; see host_device_count(). Throws InvalidArgument for an
/// invalid environment variable.
[[gnu::cold]] FANOUT_INLINE DeviceSet<HostDevice> host_devices();

/// Makes `count` host devices. Each has an equal share of the process's cores, at least one. If there are more devices
/// than cores, no thread is bound to a core. Throws InvalidDeviceId if `count` is below 1 or above 4096.
[[gnu::cold]] FANOUT_INLINE DeviceSet<HostDevice> host_devices(int count);

/// Selects the devices of host_devices() with these indices, in the order given: `host_devices({0, 2})` is host:0 and
/// host:2, and `host_devices({2})` is host:2 alone. Takes a list in braces, a vector or an array. The first is the main
/// device. Throws InvalidDeviceId if there is no index, if one is given twice, or if one is not visible. For the
/// latter, the error lists the visible devices.
template <IndexRange R = std::initializer_list<int>>
DeviceSet<HostDevice> host_devices(const R& indices) {
  return devices_at<HostDevice>(indices);
}

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/device/host_device.ipp>
#endif
