// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fanout/base/device_id.hpp>
#include <fanout/base/error.hpp>
#include <fanout/cuda/cuda_memory.hpp>
#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/lane.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/device/device.hpp>
#include <fanout/memory/memory_operations.hpp>
#include <fanout/memory/transfer.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 {

/// A GPU, or one of several devices on it that share its memory (`cuda:1` and `cuda:1#1`), each with a stream of its
/// own, in which its work and what is done with its memory happen in order. Making one calls nothing of CUDA but what
/// counts the GPUs; the GPU is used, and a context is made on it, when it is entered first.
class CudaDevice {
 public:
  static constexpr bool has_own_memory = true;

  /// The GPU with this index among the visible ones, and which of the devices on it. Throws InvalidDeviceId.
  explicit CudaDevice(int index, int instance = 0) : lane_(&cuda::detail::lane_of(valid(index, instance), instance)) {
    backend::declare_memory("cuda", cuda::cuda_memory_operations);
  }

  const DeviceId& id() const noexcept { return lane_->id(); }
  /// Which GPU, as CUDA numbers those that the process sees.
  int index() const noexcept { return lane_->id().index; }
  backend::Memory memory() const noexcept { return {lane_->card().space(), &cuda::cuda_memory_operations}; }
  backend::Worker& worker() const noexcept { return lane_->worker(); }

  /// From now until the result is destroyed, the GPU is the thread's current device, and what the thread does with the
  /// GPU's memory is in order with this device's work. Throws DeviceLost, and CudaError, also in the child of a process
  /// that used CUDA before it forked.
  cuda::detail::EnteredLane enter() const { return cuda::detail::EnteredLane(*lane_); }

  /// Waits until all work in the device's streams is done. Throws CudaError, or DeviceLost, if any of it failed.
  void synchronize() const { lane_->synchronize(); }

  /// All of the device's work so far, for one to wait for without the device's thread. Throws CudaError.
  backend::Completion completion() const { return lane_->completion(); }

  /// The stream in which the device's work happens in order: kernels go here. It lives until the process ends. A thread
  /// that has not entered the device waits for what it puts there before others use it.
  cuda::StreamRef stream() const { return lane_->compute(); }

  /// Bytes that are free on the GPU. Makes a context there. Throws CudaError.
  std::size_t free_memory() const { return cuda::detail::memory_info_of(lane_->card()).free; }

  /// One device for each visible GPU, in CUDA's order; none where CUDA cannot be used.
  static std::vector<CudaDevice> visible() {
    std::vector<CudaDevice> devices;
    const int count = cuda::detail::count_cards().count;
    for (int i = 0; i < count; ++i) devices.push_back(CudaDevice(i));
    return devices;
  }

  friend bool operator==(const CudaDevice&, const CudaDevice&) = default;

 private:
  static cuda::detail::Card& valid(int index, int instance) {
    cuda::detail::Card& card = cuda::detail::card_at(index);
    if (instance >= 0) return card;
    throw InvalidDeviceId(explain({.what = "Invalid device id",
                                   .expected = "the devices on a GPU counted from 0",
                                   .found = std::to_string(instance)}));
  }

  cuda::detail::Lane* lane_;
};
static_assert(HasOwnMemory<CudaDevice>);

}}  // namespace fanout::v0
