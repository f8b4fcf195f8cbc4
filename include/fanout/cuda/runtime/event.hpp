// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <fanout/base/error.hpp>
#include <fanout/base/exchange.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/status.hpp>

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
  static Event adopt(cudaEvent_t handle, int index) {
    Event event(Timing::on);  // unknown; CUDA reports an event without timing
    event.gpu_ = &detail::gpu_at(index);
    event.handle_ = handle;
    return event;
  }

  Event(Event&& other) noexcept
      : timing_(other.timing_),
        gpu_(fanout::detail::exchange(other.gpu_, nullptr)),
        handle_(fanout::detail::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    fanout::detail::swap(timing_, other.timing_);
    fanout::detail::swap(gpu_, other.gpu_);
    fanout::detail::swap(handle_, other.handle_);
    return *this;
  }
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
    return fanout::detail::exchange(handle_, nullptr);
  }

  /// True if all work before the last record is done, or if it was never recorded. Does not wait. Throws CudaError if
  /// the work failed.
  bool is_done() const {
    if (handle_ == nullptr) return true;
    const cudaError_t status = detail::on_any_gpu(*gpu_, [this] { return ::cudaEventQuery(handle_); });
    if (status == cudaErrorNotReady) {
      static_cast<void>(::cudaGetLastError());
      return false;
    }
    check(status, "cudaEventQuery", gpu_->index());
    return true;
  }

  /// Waits for all work before the last record. Returns at once if it was never recorded. Throws CudaError if the work
  /// failed.
  void synchronize() const {
    if (handle_ == nullptr) return;
    try {
      check(detail::on_any_gpu(*gpu_, [this] { return ::cudaEventSynchronize(handle_); }), "cudaEventSynchronize",
            gpu_->index());
    } catch (...) {  // as in StreamRef::synchronize()
      const detail::QuietGuard entered(*gpu_);
      if (entered.entered()) detail::note(::cudaEventSynchronize(handle_), gpu_->index());
      throw;
    }
  }

  /// Milliseconds from `start` to this. Both must be recorded with Timing::on on one GPU, else throws InvalidArgument.
  /// Waits for both. Throws CudaError.
  double elapsed_since(const Event& start) const {
    if (handle_ == nullptr || start.handle_ == nullptr || gpu_ != start.gpu_ || timing_ == Timing::off ||
        start.timing_ == Timing::off) {
      throw InvalidArgument(explain({.what = "time between two events",
                                     .expected = "both recorded on one device, made with fanout::cuda::Timing::on",
                                     .found = described(start) + " and " + described(*this)}));
    }
    start.synchronize();
    synchronize();
    const DeviceGuard entered(*gpu_);
    float milliseconds = 0;
    check(::cudaEventElapsedTime(&milliseconds, start.handle_, handle_), "cudaEventElapsedTime", gpu_->index());
    return static_cast<double>(milliseconds);
  }

 private:
  friend class StreamRef;

  static std::string described(const Event& event) {
    if (event.handle_ == nullptr) return "one that was not recorded";
    return (event.timing_ == Timing::on ? "one of " : "one without timing of ") +
           detail::name_of_gpu(event.gpu_->index());
  }

  /// Records it in `stream`. If that is null, the GPU must be the thread's current device.
  void record_in(cudaStream_t stream, detail::GpuState& gpu) {
    if (handle_ == nullptr) {
      const DeviceGuard entered(gpu);
      const unsigned flags = timing_ == Timing::on ? cudaEventDefault : cudaEventDisableTiming;
      check(::cudaEventCreateWithFlags(&handle_, flags), "cudaEventCreateWithFlags", gpu.index());
      gpu_ = &gpu;
    } else if (gpu_ != &gpu) {
      throw DeviceMismatch(explain({.what = "event recorded in a stream of another device than its first",
                                    .expected = detail::name_of_gpu(gpu_->index()),
                                    .found = detail::name_of_gpu(gpu.index()),
                                    .advice = "use one event for each device; any stream can wait for it"}));
    }
    check(detail::on_any_gpu(gpu, [this, stream] { return ::cudaEventRecord(handle_, stream); }), "cudaEventRecord",
          gpu.index());
  }

  Timing timing_ = Timing::off;
  detail::GpuState* gpu_ = nullptr;
  cudaEvent_t handle_ = nullptr;
};

}}}  // namespace fanout::v0::cuda
