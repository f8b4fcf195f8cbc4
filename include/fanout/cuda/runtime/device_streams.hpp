// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <utility>

#include <cuda_runtime_api.h>

#include <fanout/base/device_id.hpp>
#include <fanout/base/requirements.hpp>
#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/completions.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/numa_node.hpp>
#include <fanout/cuda/runtime/parcel.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/stream.hpp>
#include <fanout/cuda/runtime/thread_context.hpp>
#include <fanout/device/completion.hpp>
#include <fanout/sync/atomic.hpp>
#include <fanout/sync/fork_safe_mutex.hpp>
#include <fanout/worker/registry.hpp>
#include <fanout/worker/worker.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// The streams of one CudaDevice: two streams on its GPU, staging memory, and the worker that drives it. Several
/// devices on one GPU share its memory. Two more objects of each GPU belong to no device: the shared streams serve
/// threads that have entered no device, and a stream without work serves allocations. On a machine with several NUMA
/// nodes, the worker's thread and the staging memory are on the GPU's node. Made when first named, which makes no
/// context: it only asks for the GPU's bus id if there are several nodes. Never destroyed.
class DeviceStreams {
 public:
  FANOUT_INLINE DeviceStreams(GpuState& gpu, int instance, const NumaNode& node, DeviceStreams* next);
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  /// The instance number of the shared streams, for threads that have entered no device of the GPU.
  static constexpr int shared = -1;
  bool is_shared() const noexcept { return id_.instance == shared; }
  /// The instance number of the streams that memory for several devices is allocated in.
  static constexpr int allocations = -2;

  GpuState& gpu() const noexcept { return gpu_; }
  const DeviceId& id() const noexcept { return id_; }
  backend::Worker& worker() const noexcept { return worker_; }
  Staging& staging() noexcept { return staging_; }
  Parcels& parcels() noexcept { return parcels_; }
  DeviceStreams* next() const noexcept { return next_; }

  /// The stream of the device's work and memory operations, in order.
  StreamRef compute() { return made(compute_); }
  /// The stream of copies from the host, which overlap with the device's work.
  StreamRef copies() { return made(copies_); }

  /// Later work of the stream `later`, of any GPU, waits for all work that is now in `earlier`: compute() or copies().
  FANOUT_INLINE void let_wait(StreamRef later, StreamRef earlier);

  /// A Completion of all the device's work so far. It also stands for what this thread's parcel is to deliver.
  FANOUT_INLINE backend::Completion completion();
  /// Call this before a thread gives the device more work.
  void more_work_comes() noexcept { completions_.more_work_comes(); }

  /// False if no completion is waited for. Then the device is idle, unless its streams were given work elsewhere than
  /// in calls of models.
  bool is_working() const noexcept { return completions_.pending() != 0; }

  /// Waits for all work in both streams. Throws if any of it failed.
  FANOUT_INLINE void synchronize();

 private:
  FANOUT_INLINE StreamRef made(fanout::detail::Atomic<cudaStream_t>& stream);

  GpuState& gpu_;
  const DeviceId id_;
  backend::Worker& worker_;
  fanout::detail::Atomic<cudaStream_t> compute_{nullptr};
  fanout::detail::Atomic<cudaStream_t> copies_{nullptr};
  fanout::detail::ForkSafeMutex making_;
  Staging staging_;
  Parcels parcels_;
  Completions completions_;
  fanout::detail::ForkSafeMutex linking_;  // guards the two events
  Event computed_;
  Event copied_;
  DeviceStreams* const next_;
};

/// The streams of the device with this instance number on a GPU; made at first use.
FANOUT_INLINE DeviceStreams& streams_of(GpuState& gpu, int instance);

/// Releases the memory of the parcels on a GPU that no shard uses.
FANOUT_INLINE void trim_parcels(GpuState& gpu) noexcept;

/// True if the process has more devices than one, on whichever GPUs.
FANOUT_INLINE bool has_several_devices() noexcept;

/// Lets this thread's calls of CUDA pass while another thread captures a graph in cudaStreamCaptureModeGlobal: else
/// they would fail, and end the capture. Captures of this thread keep their rules. Only for fanout's own threads.
inline void ignore_captures_of_others(int gpu) noexcept {
  static thread_local constinit bool ignored = false;
  if (ignored) return;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;
  const cudaError_t status = ::cudaThreadExchangeStreamCaptureMode(&mode);
  note(status, gpu);
  ignored = status == cudaSuccess;
}

class EnteredStreams;

/// The streams that the thread entered last and has not left.
[[gnu::visibility("default")]] inline thread_local constinit const EnteredStreams* innermost_streams = nullptr;

/// Enters a device while this lives: its GPU is the thread's current device, and operations on the GPU's memory are in
/// order with the device's work. Devices must be left in the reverse order of their entry.
class EnteredStreams {
 public:
  FANOUT_INLINE explicit EnteredStreams(DeviceStreams& streams);
  EnteredStreams(const EnteredStreams&) = delete;
  EnteredStreams& operator=(const EnteredStreams&) = delete;
  FANOUT_INLINE ~EnteredStreams();

  DeviceStreams& streams() const noexcept { return streams_; }
  const EnteredStreams* outer() const noexcept { return outer_; }

  /// The parcel for the small arrays of the shard that runs here: taken at the first call. Null if there is none.
  /// Throws DeviceLost and CudaError.
  Parcel* parcel() const {
    if (parcel_ == nullptr) parcel_ = streams_.parcels().take(streams_.compute());
    return parcel_;
  }
  /// The same; null if none was taken.
  Parcel* taken_parcel() const noexcept { return parcel_; }
  /// The parcel belongs to the caller from now on, who must release it when the work that uses it is done.
  Parcel* hand_over_parcel() const noexcept { return std::exchange(parcel_, nullptr); }

  /// Sends the parcel: see Device.
  void inputs_are_made() const {
    if (parcel_ != nullptr) parcel_->send();
  }

 private:
  DeviceStreams& streams_;
  mutable Parcel* parcel_ = nullptr;
  const EnteredStreams* const outer_;
  const ThreadContext before_;
};

/// The streams that order this thread's operations on the GPU's memory: those entered last on that GPU. Threads that
/// have entered none, for example to take results, use the shared streams. So they do not wait for later work of
/// the devices.
FANOUT_INLINE DeviceStreams& current_streams(GpuState& gpu);

}}}  // namespace fanout::v0::cuda::detail

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/device_streams.ipp>
#endif
