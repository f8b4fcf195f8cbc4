// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call.hpp"

namespace stand_in { namespace {

std::shared_ptr<Event> find_event(Call& entry, cudaEvent_t handle) {
  const auto found = state().events.find(id_of(handle));
  if (found != state().events.end()) return found->second;
  entry.wrong("no event has the handle " + text(handle) + ": it was destroyed, or is none");
  return nullptr;
}

cudaError_t create(const char* name, cudaEvent_t* out, unsigned flags) {
  return call(name, context, [&](Call&) {
    constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    if (out == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
    auto event = std::make_shared<Event>();
    event->device = current_or_chosen();
    event->flags = flags;
    const unsigned id = state().next_id++;
    *out = handle_of<cudaEvent_t>(id);
    state().events.emplace(id, std::move(event));
    return cudaSuccess;
  });
}

}}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaEventCreate(cudaEvent_t* event) { return create(__func__, event, cudaEventDefault); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) { return create(__func__, event, flags); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return call(__func__, context | releasing, [&](Call& entry) {
    const auto event = find_event(entry, handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    entry.on(event->device);
    state().events.erase(id_of(handle));
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  return call(__func__, context, [&](Call& entry) {
    const auto event = find_event(entry, handle);
    const auto stream = find_stream(entry.name, stream_handle);
    if (!event || !stream) return cudaErrorInvalidResourceHandle;
    if (event->device != stream->device) {
      entry.wrong("the event is of " + device_text(event->device) + ", the stream of " + device_text(stream->device));
      return cudaErrorInvalidResourceHandle;
    }
    entry.on(stream->device);
    event->point = push_point(stream);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return flags == cudaEventRecordDefault ? cudaEventRecord(event, stream) : cudaErrorInvalidValue;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return call(__func__, context | unsafe, [&](Call& entry) {
    const auto event = find_event(entry, handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    entry.on(event->device);
    const auto point = event->point;  // it may be recorded again meanwhile
    if (point) {
      wait(entry.lock, point);
      note_synchronized(*point);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return call(__func__, context | unsafe, [&](Call& entry) {
    const auto event = find_event(entry, handle);
    if (!event) return cudaErrorInvalidResourceHandle;
    entry.on(event->device);
    if (!event->point) return cudaSuccess;
    if (!event->point->done) return cudaErrorNotReady;
    wait(entry.lock, event->point);
    return cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(__func__, context, [&](Call& entry) {
    const auto from = find_event(entry, start);
    const auto to = find_event(entry, end);
    if (!from || !to) return cudaErrorInvalidResourceHandle;
    if (milliseconds == nullptr) return cudaErrorInvalidValue;
    if (((from->flags | to->flags) & cudaEventDisableTiming) != 0 || !from->point || !to->point ||
        from->device != to->device) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!from->point->done || !to->point->done) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(to->point->when - from->point->when).count();
    return cudaSuccess;
  });
}

}  // extern "C"
