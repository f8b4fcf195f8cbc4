// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/cuda/runtime/completions.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/registry.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The streams of one CudaDevice: two streams on its GPU, staging memory, and the worker that drives it. Several devices
/// on one GPU share its memory. One more object, the GPU's shared streams, serves threads that have entered no device.
/// Made when first named, which does not call CUDA. Never destroyed.
class DeviceStreams {
 public:
  DeviceStreams(GpuState& gpu, int instance, DeviceStreams* next)
      : gpu_(gpu),
        id_{.kind = "cuda", .index = gpu.index(), .instance = instance},
        worker_(backend::registry().worker(id_, backend::registry().cores(), false)),
        staging_(gpu),
        next_(next) {}
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  /// The instance number of the shared streams, for threads that have entered no device of the GPU.
  static constexpr int shared = -1;
  bool is_shared() const noexcept { return id_.instance == shared; }

  GpuState& gpu() const noexcept { return gpu_; }
  const DeviceId& id() const noexcept { return id_; }
  backend::Worker& worker() const noexcept { return worker_; }
  Staging& staging() noexcept { return staging_; }
  DeviceStreams* next() const noexcept { return next_; }

  /// The stream of the device's work and memory operations, in order.
  StreamRef compute() { return made(compute_); }
  /// The stream of copies from the host, which overlap with the device's work.
  StreamRef copies() { return made(copies_); }

  /// A Completion of all the device's work so far.
  backend::Completion completion() { return completions_.of(compute()); }

  /// Waits for all work in both streams. Throws if any of it failed.
  void synchronize() {
    gpu_.require();
    // Compute work waits for the copies, so in this order no stream is waited for twice.
    for (fanout::detail::Atomic<cudaStream_t>* stream : {&copies_, &compute_}) {
      if (cudaStream_t handle = stream->load(fanout::detail::MemoryOrder::acquire))
        StreamRef(handle, gpu_.index()).synchronize();
    }
  }

 private:
  StreamRef made(fanout::detail::Atomic<cudaStream_t>& stream) {
    cudaStream_t handle = stream.load(fanout::detail::MemoryOrder::acquire);
    if (handle == nullptr) [[unlikely]] {
      const fanout::detail::ForkSafeLock making(making_);
      handle = stream.load(fanout::detail::MemoryOrder::acquire);
      if (handle == nullptr) {
        handle = Stream(gpu_.index()).release();
        stream.store(handle, fanout::detail::MemoryOrder::release);
      }
    }
    return {handle, gpu_.index()};
  }

  GpuState& gpu_;
  const DeviceId id_;
  backend::Worker& worker_;
  fanout::detail::Atomic<cudaStream_t> compute_{nullptr};
  fanout::detail::Atomic<cudaStream_t> copies_{nullptr};
  fanout::detail::ForkSafeMutex making_;
  Staging staging_;
  Completions completions_;
  DeviceStreams* const next_;
};

/// The streams of the device with this instance number on a GPU; made at first use.
inline DeviceStreams& streams_of(GpuState& gpu, int instance) {
  const auto find = [&]() -> DeviceStreams* {
    DeviceStreams* streams = gpu.all_streams().load(fanout::detail::MemoryOrder::acquire);
    while (streams != nullptr && streams->id().instance != instance) streams = streams->next();
    return streams;
  };
  if (DeviceStreams* known = find()) return *known;
  const fanout::detail::ForkSafeLock making(gpu.making());
  if (DeviceStreams* known = find()) return *known;
  auto* made = new DeviceStreams(gpu, instance, gpu.all_streams().load(fanout::detail::MemoryOrder::relaxed));
  gpu.all_streams().store(made, fanout::detail::MemoryOrder::release);
  return *made;
}

class EnteredStreams;

/// The streams that the thread entered last and has not left.
[[gnu::visibility("default")]] inline thread_local constinit const EnteredStreams* innermost_streams = nullptr;

/// Enters a device while this lives: its GPU is the thread's current device, and operations on the GPU's memory are in
/// order with the device's work. Devices must be left in the reverse order of their entry.
class EnteredStreams {
 public:
  explicit EnteredStreams(DeviceStreams& streams)
      : guard_(streams.gpu()), streams_(streams), outer_(innermost_streams) {
    innermost_streams = this;
  }
  EnteredStreams(const EnteredStreams&) = delete;
  EnteredStreams& operator=(const EnteredStreams&) = delete;
  ~EnteredStreams() { innermost_streams = outer_; }

  DeviceStreams& streams() const noexcept { return streams_; }
  const EnteredStreams* outer() const noexcept { return outer_; }

 private:
  DeviceGuard guard_;
  DeviceStreams& streams_;
  const EnteredStreams* outer_;
};

/// The streams that order this thread's operations on the GPU's memory: those entered last on that GPU. Threads that
/// have entered none, for example to take results, use the shared streams. So they do not wait for later work of
/// the devices.
inline DeviceStreams& current_streams(GpuState& gpu) {
  for (const EnteredStreams* entered = innermost_streams; entered != nullptr; entered = entered->outer()) {
    if (&entered->streams().gpu() == &gpu) return entered->streams();
  }
  return streams_of(gpu, DeviceStreams::shared);
}

}}}  // namespace fanout::v0::cuda::detail
