// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/event.hpp>

#include <utility>

#include <fanout/base/error.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

Event Event::adopt(cudaEvent_t handle, int index) {
  Event event(Timing::on);  // unknown; CUDA reports an event without timing
  event.gpu_ = &detail::gpu_at(index);
  event.handle_ = handle;
  return event;
}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(timing_, other.timing_);
  std::swap(gpu_, other.gpu_);
  std::swap(handle_, other.handle_);
  return *this;
}

bool Event::is_done() const {
  if (handle_ == nullptr) return true;
  const cudaError_t status = detail::on_any_gpu(*gpu_, [this] { return ::cudaEventQuery(handle_); });
  if (status == cudaErrorNotReady) {
    static_cast<void>(::cudaGetLastError());
    return false;
  }
  check(status, "cudaEventQuery", gpu_->index());
  return true;
}

void Event::synchronize() const {
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

double Event::elapsed_since(const Event& start) const {
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

void Event::record_in(cudaStream_t stream, detail::GpuState& gpu) {
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

}}}  // namespace fanout::v0::cuda
