// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/runtime/thread_context.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// A GPU, or one of several devices on it that share its memory (`cuda:1` and `cuda:1#1`). Each device has a stream of
/// its own: its work, and operations on its memory, happen in order there. A small value; copies are the same device.
/// The constructor only counts the GPUs. The GPU's context is made when the device is first entered.
class CudaDevice {
 public:
  static constexpr bool has_own_memory = true;
  using thread_hold = cuda::detail::HeldContext;

  /// The GPU with this index among the visible ones, and the instance among the devices on it, both from 0. Throws
  /// InvalidDeviceId. Throws InvalidArgument if FANOUT_PIN has an invalid value.
  explicit CudaDevice(int index, int instance = 0)
      : streams_(&cuda::detail::streams_of(valid(index, instance), instance)) {
    backend::declare_memory("cuda", cuda::cuda_memory_operations);
  }

  const DeviceId& id() const noexcept { return streams_->id(); }
  /// The GPU's index among the visible ones, as CUDA numbers them.
  int index() const noexcept { return streams_->id().index; }
  /// The GPU's memory, with the operations on it. Devices on one GPU return the same.
  backend::Memory memory() const noexcept { return {streams_->gpu().space(), &cuda::cuda_memory_operations}; }
  backend::Worker& worker() const noexcept { return streams_->worker(); }

  /// Until the result is destroyed, the GPU is the thread's current device, and what the thread does with the GPU's
  /// memory is in order with this device's work. Throws DeviceLost. Throws CudaError, also in the child of a process
  /// that used CUDA before it forked.
  cuda::detail::EnteredStreams enter() const { return cuda::detail::EnteredStreams(*streams_); }

  /// Waits until all work in the device's streams is done, that of other threads included. Throws CudaError, or
  /// DeviceLost, if any of it failed.
  void synchronize() const { streams_->synchronize(); }

  /// A Completion of all the device's work so far: any thread can wait for it. Throws CudaError.
  backend::Completion completion() const { return streams_->completion(); }

  /// The stream of the device's work: kernels go here. It lives until the process ends. A thread that has not entered
  /// the device must wait for its work there before others use the results.
  cuda::StreamRef stream() const { return streams_->compute(); }

  /// Free bytes of the whole GPU. Makes its context at first use. Throws CudaError.
  std::size_t free_memory() const { return cuda::detail::memory_info_of(streams_->gpu()).free; }

  /// One device for each visible GPU, in CUDA's order. Empty if CUDA cannot be used.
  template <std::same_as<CudaDevice> Self = CudaDevice>
  static std::vector<Self> visible() {
    std::vector<Self> devices;
    const int count = cuda::detail::count_gpus().count;
    for (int i = 0; i < count; ++i) devices.push_back(Self(i));
    return devices;
  }

  friend bool operator==(const CudaDevice&, const CudaDevice&) = default;

 private:
  FANOUT_INLINE static cuda::detail::GpuState& valid(int index, int instance);

  cuda::detail::DeviceStreams* streams_;
};
static_assert(HasOwnMemory<CudaDevice>);

}}  // namespace fanout::v0

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/cuda_device.ipp>
#endif
