// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda {

void StreamRef::synchronize() const {
  try {
    check(call([this] { return ::cudaStreamSynchronize(handle_); }), "cudaStreamSynchronize", index_);
  } catch (...) {
    // The work may go on while its memory is released next. So wait for it again, if possible.
    detail::await_quietly(*this);
    throw;
  }
}

bool StreamRef::is_idle() const {
  const cudaError_t status = call([this] { return ::cudaStreamQuery(handle_); });
  if (status == cudaErrorNotReady) {
    static_cast<void>(::cudaGetLastError());
    return false;
  }
  check(status, "cudaStreamQuery", index_);
  return true;
}

void StreamRef::record(Event& event) const {
  detail::GpuState& gpu = detail::gpu_at(index_);
  if (handle_ != nullptr) return event.record_in(handle_, gpu);
  const DeviceGuard entered(gpu);  // the default stream is that of the current device
  event.record_in(handle_, gpu);
}

void StreamRef::wait(StreamRef other) const {
  if (*this == other) return;
  Event event;
  other.record(event);
  wait(event);
}

Stream::Stream(int index, int priority) : stream_(nullptr, index) {
  const DeviceGuard entered(index);
  cudaStream_t handle = nullptr;
  check(::cudaStreamCreateWithPriority(&handle, cudaStreamDefault, priority), "cudaStreamCreateWithPriority", index);
  stream_ = StreamRef(handle, index);
}

void detail::await_quietly(StreamRef stream) noexcept {
  const QuietGuard entered(gpu_at(stream.device()));
  if (entered.entered()) note(::cudaStreamSynchronize(stream.get()), stream.device());
}

}}}  // namespace fanout::v0::cuda
