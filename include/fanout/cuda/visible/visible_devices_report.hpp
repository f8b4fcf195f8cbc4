// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/visible/gpus_on_bus.hpp>
#include <fanout/cuda/visible/visible_devices.hpp>
#include <fanout/cuda/visible/visible_token.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

namespace detail {

/// A device that CUDA shows, as the runtime describes it.
struct SeenDevice {
  std::string uuid;
  std::string name;
  std::string bus_id;
};

inline std::string text_of(const SeenDevice& device) {
  return device.name + ", " + device.uuid + ", on the bus at " + device.bus_id;
}

FANOUT_INLINE SeenDevice seen_device(const cudaDeviceProp& properties);

/// The inputs of visible_devices_report(), so that tests can describe any machine.
struct VisibleDevicesReport {
  const char* variable;
  const char* order;
  /// The GPUs on the bus; nullopt if unknown.
  std::optional<std::vector<PhysicalGpu>> machine;
  /// The devices that CUDA shows; nullopt if CUDA could not be asked.
  std::optional<std::vector<SeenDevice>> seen;
  /// The reason if CUDA shows none.
  std::string reason;

  FANOUT_INLINE std::string text() const;

 private:
  std::size_t seen_count() const noexcept { return seen ? seen->size() : 0; }
  static bool lists_mig(const VisibleDevices& read) {
    return !read.tokens.empty() && read.tokens[0].text.starts_with("MIG-");
  }

  FANOUT_INLINE std::string variable_line() const;

  FANOUT_INLINE std::string device_lines(const VisibleDevices& read) const;

  FANOUT_INLINE std::string token_text(const VisibleToken& token) const;

  FANOUT_INLINE std::string order_line() const;

  std::string count_line() const {
    if (seen_count() == 0) return "No device is visible: " + reason + ".\n";
    if (seen_count() == 1) return "1 device is visible.\n";
    return std::to_string(seen_count()) + " devices are visible.\n";
  }

  FANOUT_INLINE std::string hidden_lines(const VisibleDevices& read) const;

  /// True if CUDA shows other devices than the variables select now.
  FANOUT_INLINE bool differs(const VisibleDevices& read) const;

  FANOUT_INLINE std::string change_lines(const VisibleDevices& read) const;
};

}  // namespace detail

/// What CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER did, as text: the device of each token, where the list ended and
/// why, how GPUs are counted, and which GPUs are not visible, as far as that is known. Asks CUDA, which then reads the
/// variables if it has not yet. Makes no context. Throws CudaError if CUDA does not return the properties of a device
/// that it counts.
FANOUT_INLINE std::string visible_devices_report();

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/visible/visible_devices_report.ipp>
#endif
