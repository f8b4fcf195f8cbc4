// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fanout/base/any_function.hpp>
#include <fanout/base/error.hpp>
#include <fanout/cuda/cuda_device.hpp>
#include <fanout/cuda/runtime/availability.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/visible/imbalance.hpp>
#include <fanout/device/device_set.hpp>
#include <fanout/device/indices.hpp>

namespace fanout { inline namespace v0 {

/// Selects CUDA devices for cuda_devices().
struct CudaDeviceOptions {
  /// Indices among the visible GPUs, in this order; the first is the main device. Empty: all visible GPUs.
  std::vector<int> indices = {};
  /// Number of devices. 0: one for each index. If it is less, the first ones are used. If it is more, the indices are
  /// repeated, which needs `oversubscribe`.
  int count = 0;
  /// True allows several devices on one GPU: `cuda:0`, `cuda:0#1` and so on, each with its own stream, sharing the
  /// GPU's memory. For tests, and for models that leave most of a GPU idle.
  bool oversubscribe = false;
  /// Called once with a warning if a GPU has less than 75% of the memory of another one or, failing that, of its
  /// multiprocessors. If it is empty, nothing is checked.
  detail::AnyFunction<void(std::string_view)> on_imbalance = {};
};

namespace detail {

// This and what follows are templates for the reason that host_devices() is one.

template <std::same_as<CudaDevice> D = CudaDevice>
void warn_of_imbalance(const std::vector<D>& devices, const AnyFunction<void(std::string_view)>& on_imbalance) {
  if (!on_imbalance) return;
  cuda::GpuSize sizes[cuda::detail::most_gpus];
  std::size_t count = 0;
  bool counted[cuda::detail::most_gpus] = {};
  for (const D& device : devices) {
    if (counted[device.index()]) continue;  // another device on the same GPU
    counted[device.index()] = true;
    const cudaDeviceProp& properties = cuda::detail::gpu_at(device.index()).properties();
    sizes[count++] = {device.index(), properties.totalGlobalMem, properties.multiProcessorCount};
  }
  const std::string warning = cuda::detail::imbalance_warning_of(sizes, count);
  if (!warning.empty()) on_imbalance(warning);
}

/// The indices that the options name, before `count` applies. Throws InvalidDeviceId if one is not visible, or if there
/// are none.
template <std::same_as<int> Index = int>
std::vector<Index> named_gpus(const CudaDeviceOptions& options) {
  std::vector<Index> named = options.indices;
  const int visible = cuda::device_count();
  for (const int index : named) {
    if (index < 0 || index >= visible) cuda::detail::refuse_index(index);
  }
  for (int i = 0; options.indices.empty() && i < visible; ++i) named.push_back(i);
  if (named.empty()) {
    throw InvalidDeviceId(
        explain({.what = "Invalid device id",
                 .where = "cuda_devices",
                 .expected = "at least one CUDA device",
                 .found = "none: " + cuda::unavailable_reason(),
                 .advice = "FirstAvailable<CudaDevice, HostDevice> uses host cores if there is no GPU"}));
  }
  return named;
}

template <std::same_as<CudaDevice> D = CudaDevice>
DeviceSet<D> make_cuda_devices(const CudaDeviceOptions& options) {
  const auto named = named_gpus<int>(options);
  const std::size_t count = options.count > 0 ? static_cast<std::size_t>(options.count) : named.size();
  const auto refuse = [](std::string expected, std::string found) {
    throw InvalidDeviceId(explain({.what = "Invalid device id",
                                   .where = "cuda_devices",
                                   .expected = std::move(expected),
                                   .found = std::move(found),
                                   .advice = "set .oversubscribe = true to name a GPU several times"}));
  };
  if (options.count < 0) refuse("a count of devices, or 0 for one on each GPU", std::to_string(options.count));
  if (count > named.size() && !options.oversubscribe) {
    refuse("at most " + std::to_string(named.size()) + " devices", std::to_string(count));
  }
  std::vector<D> devices;
  for (std::size_t i = 0; i < count; ++i) {
    const int index = named[i % named.size()];
    int instance = 0;
    for (const D& device : devices) {
      if (device.index() == index) ++instance;
    }
    if (instance > 0 && !options.oversubscribe) {
      refuse("each GPU once", cuda::detail::name_of_gpu(index) + " again at position " + std::to_string(i));
    }
    devices.push_back(D(index, instance));
  }
  warn_of_imbalance(devices, options.on_imbalance);
  return DeviceSet<D>(std::move(devices));
}

}  // namespace detail

/// A set of CUDA devices: `cuda_devices({.count = 4, .oversubscribe = true})` makes four, on as many GPUs as there are.
/// Makes no context. Throws InvalidDeviceId if an index is not visible, if a GPU repeats without `oversubscribe`, or if
/// there is no GPU. Throws InvalidArgument if FANOUT_PIN has an invalid value.
template <std::same_as<CudaDevice> D = CudaDevice>
DeviceSet<D> cuda_devices(const CudaDeviceOptions& options) {
  return detail::make_cuda_devices<D>(options);
}

/// All visible GPUs, in CUDA's order. Throws InvalidDeviceId if there are none.
template <std::same_as<CudaDevice> D = CudaDevice>
DeviceSet<D> cuda_devices() {
  return detail::make_cuda_devices<D>({});
}

/// The first `count` visible GPUs. Throws InvalidDeviceId if `count` is below 1, or if there are fewer.
template <std::same_as<CudaDevice> D = CudaDevice>
DeviceSet<D> cuda_devices(int count) {
  return detail::make_cuda_devices<D>({.count = count == 0 ? -1 : count});
}

/// GPUs by their indices among the visible ones, in the given order: `cuda_devices({0, 2, 3})`, or from a vector or an
/// array. The first is the main device. Throws InvalidDeviceId as above, and if there is no index.
template <IndexRange R = std::initializer_list<int>, std::same_as<CudaDevice> D = CudaDevice>
DeviceSet<D> cuda_devices(const R& indices) {
  CudaDeviceOptions options;
  for (const auto index : indices) {
    // A negative index becomes a large number.
    const auto number = static_cast<std::size_t>(index);
    options.indices.push_back(number < std::size_t{1} << 30 ? static_cast<int>(number) : -1);
  }
  if (options.indices.empty()) return devices_at<D>(options.indices);  // throws
  return detail::make_cuda_devices<D>(options);
}

}}  // namespace fanout::v0
