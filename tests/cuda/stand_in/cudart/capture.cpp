// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Captures of streams into graphs: only what they forbid to other calls. The graphs are empty.
#include <algorithm>

#include "call.hpp"

namespace stand_in {
namespace {

/// The capture of the stream; the end of the list if there is none.
auto capture_of(const StreamPtr& stream) {
  auto& captures = state().captures;
  return std::find_if(captures.begin(), captures.end(), [&](const Capture& c) { return c.stream == stream->id; });
}

}  // namespace

bool invalidates_captures() {
  const ThreadState& mine = this_thread();
  bool any = false;
  for (Capture& capture : state().captures) {
    const bool own = capture.thread == &mine && capture.mode != cudaStreamCaptureModeRelaxed &&
                     mine.capture_mode != cudaStreamCaptureModeRelaxed;
    const bool others = capture.thread != &mine && capture.mode == cudaStreamCaptureModeGlobal &&
                        mine.capture_mode == cudaStreamCaptureModeGlobal;
    if (!own && !others) continue;
    capture.invalidated = true;
    any = true;
  }
  return any;
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call(__func__, nothing, [&](Call&) {
    if (mode == nullptr) return cudaErrorInvalidValue;
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (stream->is_default) return cudaErrorStreamCaptureUnsupported;
    if (capture_of(stream) != state().captures.end()) return cudaErrorIllegalState;
    state().captures.push_back({stream->id, &this_thread(), mode, false});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream || graph == nullptr) return cudaErrorInvalidValue;
    const auto capture = capture_of(stream);
    if (capture == state().captures.end()) return cudaErrorIllegalState;
    const bool invalidated = capture->invalidated;
    state().captures.erase(capture);
    *graph = invalidated ? nullptr : handle_of<cudaGraph_t>(state().next_id++);
    return invalidated ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
  });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream || status == nullptr) return cudaErrorInvalidValue;
    const auto capture = capture_of(stream);
    *status = capture == state().captures.end() ? cudaStreamCaptureStatusNone
              : capture->invalidated            ? cudaStreamCaptureStatusInvalidated
                                                : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call(__func__, devices | releasing,
              [&](Call&) { return graph == nullptr ? cudaErrorInvalidValue : cudaSuccess; });
}

}  // extern "C"
