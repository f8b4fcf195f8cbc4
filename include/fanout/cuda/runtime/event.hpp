// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/separate_compilation.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

#include <string>
#include <utility>

namespace fanout { inline namespace v0 { namespace cuda {

/// Selects if an event records the time, which costs a little.
enum class Timing : bool { off, on };

/// A point in the work of a stream that others can wait for. Owns the native event. It is made at the first record, on
/// the GPU of that stream, and can then be recorded on that GPU only. Streams of any GPU can wait for it. One thread at
/// a time may record it.
class Event {
 public:
  Event() noexcept = default;
  explicit Event(Timing timing) noexcept : timing_(timing) {}

  /// Takes ownership of a native event of this GPU. Throws InvalidDeviceId.
  FANOUT_INLINE static Event adopt(cudaEvent_t handle, int index);

  Event(Event&& other) noexcept
      : timing_(other.timing_),
        gpu_(std::exchange(other.gpu_, nullptr)),
        handle_(std::exchange(other.handle_, nullptr)) {}
  FANOUT_INLINE Event& operator=(Event&& other) noexcept;
  ~Event() {
    if (handle_ == nullptr) return;
    const detail::QuietGuard entered(*gpu_);
    if (entered.entered()) detail::note(::cudaEventDestroy(handle_), gpu_->index());
  }

  /// The native event, still owned by this; null before the first record.
  cudaEvent_t get() const noexcept { return handle_; }
  /// The index of its GPU; -1 before the first record.
  int device() const noexcept { return gpu_ == nullptr ? -1 : gpu_->index(); }
  /// Releases ownership of the native event. This is then as if never recorded.
  cudaEvent_t release() noexcept {
    gpu_ = nullptr;
    return std::exchange(handle_, nullptr);
  }

  /// True if all work before the last record is done, or if it was never recorded. Does not wait. Throws CudaError if
  /// the work failed.
  FANOUT_INLINE bool is_done() const;

  /// Waits for all work before the last record. Returns at once if it was never recorded. Throws CudaError if the work
  /// failed.
  FANOUT_INLINE void synchronize() const;

  /// Milliseconds from `start` to this. Both must be recorded with Timing::on on one GPU, else throws InvalidArgument.
  /// Waits for both. Throws CudaError.
  FANOUT_INLINE double elapsed_since(const Event& start) const;

 private:
  friend class StreamRef;

  static std::string described(const Event& event) {
    if (event.handle_ == nullptr) return "one that was not recorded";
    return (event.timing_ == Timing::on ? "one of " : "one without timing of ") +
           detail::name_of_gpu(event.gpu_->index());
  }

  /// Records it in `stream`. If that is null, the GPU must be the thread's current device.
  FANOUT_INLINE void record_in(cudaStream_t stream, detail::GpuState& gpu);

  Timing timing_ = Timing::off;
  detail::GpuState* gpu_ = nullptr;
  cudaEvent_t handle_ = nullptr;
};

}}}  // namespace fanout::v0::cuda

#if !defined(FANOUT_SEPARATE_COMPILATION)
#include <fanout/cuda/runtime/event.ipp>
#endif
