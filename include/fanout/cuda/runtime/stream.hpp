// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <utility>

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

/// Borrows a stream of a GPU: its work runs in order. Copies are the same stream. No function changes the thread's
/// current device.
class StreamRef {
 public:
  /// A native stream, and the index of the GPU that it was made on. Null is the GPU's default stream.
  constexpr StreamRef(cudaStream_t handle, int index) noexcept : handle_(handle), index_(index) {}

  /// The native stream.
  constexpr cudaStream_t get() const noexcept { return handle_; }
  /// The index of its GPU.
  constexpr int device() const noexcept { return index_; }

  /// Waits until all work in the stream is done. Throws CudaError, or DeviceLost, if any of it failed.
  FANOUT_INLINE void synchronize() const;

  /// True if all work in the stream is done. Does not wait. Throws CudaError if any of it failed.
  FANOUT_INLINE bool is_idle() const;

  /// Records the event behind all work that is in the stream now. Does not wait. Throws DeviceMismatch if the event was
  /// recorded on another GPU before, and CudaError.
  FANOUT_INLINE void record(Event& event) const;

  /// Later work of this stream waits for the event, which may be of any GPU. The thread does not wait. Does nothing for
  /// an event that was never recorded. Throws CudaError.
  void wait(const Event& event) const {
    if (event.get() == nullptr) return;
    check(call([&] { return ::cudaStreamWaitEvent(handle_, event.get(), 0); }), "cudaStreamWaitEvent", index_);
  }

  /// The same for all work that is in the other stream now.
  FANOUT_INLINE void wait(StreamRef other) const;

  friend constexpr bool operator==(const StreamRef&, const StreamRef&) = default;

 private:
  template <class Call>
  cudaError_t call(const Call& call) const {
    if (handle_ != nullptr) return detail::on_any_gpu(detail::gpu_at(index_), call);
    const DeviceGuard entered(index_);  // the default stream is that of the current device
    return call();
  }

  cudaStream_t handle_;
  int index_;
};

/// Owns a stream of a GPU. It is in order with the GPU's default stream, both ways, so data made there is ready here.
class Stream {
 public:
  /// A new stream on the GPU with this index. A smaller priority number runs first. GPUs know at least -1 and 0; other
  /// numbers are rounded to the nearest known one. Throws InvalidDeviceId, DeviceLost and CudaError.
  FANOUT_INLINE explicit Stream(int index, int priority = 0);
  /// The same on the GPU of a device.
  template <class D>
    requires requires(const D& device) {
      { device.index() } -> std::same_as<int>;
    }
  explicit Stream(const D& device, int priority = 0) : Stream(device.index(), priority) {}

  /// Takes ownership of a native stream of this GPU.
  static Stream adopt(cudaStream_t handle, int index) noexcept { return Stream(StreamRef(handle, index)); }

  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, StreamRef(nullptr, other.device()))) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  /// Destroys the stream without waiting. Work in it is still done.
  ~Stream() {
    if (get() == nullptr) return;
    const detail::QuietGuard entered(detail::gpu_at(device()));
    if (entered.entered()) detail::note(::cudaStreamDestroy(get()), device());
  }

  cudaStream_t get() const noexcept { return stream_.get(); }
  int device() const noexcept { return stream_.device(); }
  operator StreamRef() const noexcept { return stream_; }  // NOLINT(google-explicit-constructor): borrows
  /// Releases ownership of the native stream.
  cudaStream_t release() noexcept { return std::exchange(stream_, StreamRef(nullptr, device())).get(); }

  /// As in StreamRef.
  void synchronize() const { stream_.synchronize(); }
  bool is_idle() const { return stream_.is_idle(); }
  void record(Event& event) const { stream_.record(event); }
  void wait(const Event& event) const { stream_.wait(event); }
  void wait(StreamRef other) const { stream_.wait(other); }

 private:
  explicit Stream(StreamRef stream) noexcept : stream_(stream) {}

  StreamRef stream_;
};

namespace detail {

/// Waits for a stream. Throws nothing, so destructors can call it.
FANOUT_INLINE void await_quietly(StreamRef stream) noexcept;

/// If something fails half way, its enqueued part may go on while its memory is released in another stream. So the
/// destructor waits for the stream, unless finished() was called.
class Unfinished {
 public:
  explicit Unfinished(StreamRef stream) noexcept : stream_(stream) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (!finished_) await_quietly(stream_);
  }
  void finished() noexcept { finished_ = true; }

 private:
  StreamRef stream_;
  bool finished_ = false;
};

}  // namespace detail

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/stream.ipp>
#endif
