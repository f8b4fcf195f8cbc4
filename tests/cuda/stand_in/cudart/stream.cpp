// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams: a queue and a thread each, started when there is something to do.
#include <algorithm>
#include <thread>

#include "call.hpp"

namespace stand_in {

namespace {
constexpr auto is_before = [](const Clock::Position& one, unsigned stream) { return one.stream < stream; };
}

void Clock::merge(const Clock& other) {
  auto mine = seen_.begin();
  for (const Position& theirs : other.seen_) {
    mine = std::lower_bound(mine, seen_.end(), theirs.stream, is_before);
    if (mine == seen_.end() || mine->stream != theirs.stream) {
      mine = seen_.insert(mine, theirs);
    } else {
      mine->position = std::max(mine->position, theirs.position);
    }
  }
}

void Clock::set(unsigned stream, std::uint64_t position) {
  const auto mine = std::lower_bound(seen_.begin(), seen_.end(), stream, is_before);
  if (mine == seen_.end() || mine->stream != stream) {
    seen_.insert(mine, {stream, position});
  } else {
    mine->position = position;
  }
}

bool Clock::covers(unsigned stream, std::uint64_t position) const {
  const auto found = std::lower_bound(seen_.begin(), seen_.end(), stream, is_before);
  return found != seen_.end() && found->stream == stream && found->position >= position;
}

namespace {

/// How long the next break is; from a generator of each stream's own, so that a seed gives the same breaks.
std::chrono::microseconds next_break(std::uint64_t& random) {
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  if (random % 2 == 0) return {};
  return std::chrono::microseconds(random % 64 == 1 ? 3000 : (random >> 8) % 300);
}

void run(const StreamPtr& stream) {
  auto& all = state();
  std::uint64_t random = 0;
  for (;;) {
    std::unique_ptr<Task> task;
    std::chrono::microseconds pause{};
    bool healthy = true;
    {
      const Quiet quiet;
      std::unique_lock lock(all.mutex);
      stream->wake.wait(lock, [&] { return !stream->queue.empty() || stream->destroyed; });
      if (stream->queue.empty()) return;
      stream->busy = true;
      task = std::move(stream->queue.front());
      stream->queue.pop_front();
      if (task->waits_for) {
        task->waits_for->reached.wait(lock, [&] { return task->waits_for->done; });
        task->waits_for->order.acquire();
      }
      task->start.acquire();
      healthy = device_at(stream->device).poison == 0;
      if (all.delays != 0) {
        if (random == 0) random = (std::uint64_t{all.delays} * 0x9e3779b97f4a7c15 + stream->id) | 1;
        pause = next_break(random);
      }
      this_thread().in_host_function = task->work == Work::host_function;
      if (task->work == Work::copy) {
        pause += std::chrono::microseconds(all.copy_cost);
        all.most_copies_at_once = std::max(all.most_copies_at_once, ++all.copies_now);
      }
    }
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    if (task->run && healthy) task->run();
    {
      const Quiet quiet;
      if (task->reaches) task->reaches->order.release();
      const std::lock_guard lock(all.mutex);
      this_thread().in_host_function = false;
      if (task->work == Work::copy) --all.copies_now;
      stream->busy = false;  // with the point: who has waited for the stream finds it idle
      if (task->reaches) {
        task->reaches->when = std::chrono::steady_clock::now();
        task->reaches->done = true;
        task->reaches->reached.notify_all();
      }
      task.reset();
    }
  }
}

void append(const StreamPtr& stream, std::unique_ptr<Task> task) {
  task->start.release();
  stream->queue.push_back(std::move(task));
  if (!stream->started) {
    stream->started = true;
    std::thread(run, stream).detach();
  }
  stream->wake.notify_one();
}

/// A point that is reached when all is done that is in the stream now; pushed without regard to the default stream.
PointPtr tail_of(const StreamPtr& stream) {
  if (!stream->tail || stream->tail_at != stream->pushed) {
    auto task = std::make_unique<Task>();
    task->reaches = std::make_shared<Point>();
    task->reaches->clock = stream->clock;
    stream->tail = task->reaches;
    stream->tail_at = stream->pushed;
    append(stream, std::move(task));
  }
  return stream->tail;
}

void follow(const StreamPtr& later, const StreamPtr& earlier) {
  if (later->waited[earlier->id] == earlier->pushed) return;
  later->waited[earlier->id] = earlier->pushed;
  auto task = std::make_unique<Task>();
  task->waits_for = tail_of(earlier);
  later->clock.merge(task->waits_for->clock);
  append(later, std::move(task));
}

/// The legacy default stream waits for all streams of the device that are not cudaStreamNonBlocking, and they for it.
void keep_default_order(const StreamPtr& stream) {
  if (stream->is_default) {
    for (const auto& [id, other] : state().streams) {
      if (other->device == stream->device && other->blocking()) follow(stream, other);
    }
  } else if (stream->blocking()) {
    const auto& first = device_at(stream->device).default_stream;
    if (first) follow(stream, first);
  }
}

std::uint64_t push_task(const StreamPtr& stream, std::unique_ptr<Task> task) {
  next_position(stream);
  if (task->waits_for) stream->clock.merge(task->waits_for->clock);
  if (task->reaches) {
    task->reaches->clock = stream->clock;
    stream->tail = task->reaches;
    stream->tail_at = stream->pushed;
  }
  append(stream, std::move(task));
  return stream->pushed;
}

StreamPtr make_stream(int device, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->id = state().next_id++;
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  return stream;
}

cudaError_t create(const char* name, cudaStream_t* out, unsigned flags, int priority) {
  return call(name, context, [&](Call&) {
    if (out == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
    auto stream = make_stream(current_or_chosen(), flags, std::clamp(priority, -5, 0));
    *out = handle_of<cudaStream_t>(stream->id);
    state().streams.emplace(stream->id, std::move(stream));
    return cudaSuccess;
  });
}

}  // namespace

unsigned id_of(const void* handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  return (number >> 40) == 0x0fa000 ? static_cast<unsigned>((number >> 8) & 0xffffffff) : 0;
}

StreamPtr default_stream(int device) {
  auto& stream = device_at(device).default_stream;
  if (!stream) {
    stream = make_stream(device, 0, 0);
    stream->is_default = true;
  }
  return stream;
}

StreamPtr find_stream(const char* name, cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return default_stream(current_or_chosen());
  if (handle == cudaStreamPerThread) {
    misuse(name, "the stand-in has no per-thread default stream");
    return nullptr;
  }
  const auto found = state().streams.find(id_of(handle));
  if (found != state().streams.end()) return found->second;
  misuse(name, "no stream has the handle " + text(handle) + ": it was destroyed, or is none");
  return nullptr;
}

std::uint64_t next_position(const StreamPtr& stream) {
  for (const Capture& capture : state().captures) {
    if (capture.stream == stream->id) misuse("capture", "the stand-in records no work of a stream that is captured");
  }
  keep_default_order(stream);
  stream->clock.merge(state().host);
  stream->clock.set(stream->id, ++stream->pushed);
  return stream->pushed;
}

std::uint64_t push(const StreamPtr& stream, std::function<void()> run, Work work) {
  auto task = std::make_unique<Task>();
  task->run = std::move(run);
  task->work = work;
  return push_task(stream, std::move(task));
}

PointPtr push_point(const StreamPtr& stream) {
  auto task = std::make_unique<Task>();
  task->reaches = std::make_shared<Point>();
  auto point = task->reaches;
  push_task(stream, std::move(task));
  return point;
}

void push_wait(const StreamPtr& stream, const PointPtr& point) {
  auto task = std::make_unique<Task>();
  task->waits_for = point;
  push_task(stream, std::move(task));
}

bool idle(const Stream& stream) { return stream.queue.empty() && !stream.busy; }

void wait(std::unique_lock<std::mutex>& lock, const PointPtr& point) {
  point->reached.wait(lock, [&] { return point->done; });
  point->order.acquire();
  state().host.merge(point->clock);
}

void synchronize_device(std::unique_lock<std::mutex>& lock, int device) {
  std::vector<PointPtr> points;
  for (const auto& [id, stream] : state().streams) {
    if (stream->device == device) points.push_back(tail_of(stream));
  }
  const auto& first = device_at(device).default_stream;
  if (first) points.push_back(tail_of(first));
  auto& destroyed = device_at(device).destroyed_streams;
  points.insert(points.end(), destroyed.begin(), destroyed.end());
  destroyed.clear();
  for (const auto& point : points) {
    wait(lock, point);
    note_synchronized(*point);
  }
  for (auto& [id, pool] : state().pools) {
    if (pool->device == device) trim(*pool, pool->threshold);
  }
}

}  // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create(__func__, stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return create(__func__, stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return create(__func__, stream, flags, priority);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(__func__, context, [&](Call&) {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call(__func__, context | releasing, [&](Call& entry) {
    if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
      entry.wrong("the default stream cannot be destroyed");
      return cudaErrorInvalidResourceHandle;
    }
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    entry.on(stream->device);
    // What is in it still happens, and the default stream and the device still wait for it.
    auto& device = device_at(stream->device);
    if (stream->blocking()) follow(default_stream(stream->device), stream);
    if (!idle(*stream)) device.destroyed_streams.push_back(tail_of(stream));
    stream->destroyed = true;
    stream->wake.notify_one();
    state().streams.erase(stream->id);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call(__func__, context | unsafe, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    entry.on(stream->device);
    const auto point = stream->is_default ? push_point(stream) : tail_of(stream);
    wait(entry.lock, point);
    note_synchronized(*point);
    for (auto& [id, pool] : state().pools) {
      if (pool->device == stream->device) trim(*pool, pool->threshold);
    }
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call(__func__, context | unsafe, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    entry.on(stream->device);
    const bool was_idle = idle(*stream) && (!stream->tail || stream->tail->done);
    const auto point = tail_of(stream);
    if (was_idle) wait(entry.lock, point);  // at once: there is nothing before it
    return was_idle ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int flags) {
  return call(__func__, context, [&](Call& entry) {
    if (flags != 0) return cudaErrorInvalidValue;
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    const auto found = state().events.find(id_of(event));
    if (found == state().events.end()) {
      entry.wrong("no event has the handle " + text(event) + ": it was destroyed, or is none");
      return cudaErrorInvalidResourceHandle;
    }
    entry.on(stream->device);
    if (found->second->point) push_wait(stream, found->second->point);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = stream->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int* flags) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (flags == nullptr) return cudaErrorInvalidValue;
    *flags = stream->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (priority == nullptr) return cudaErrorInvalidValue;
    *priority = stream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (id == nullptr) return cudaErrorInvalidValue;
    *id = stream->id;
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return call(__func__, context, [&](Call& entry) {
    const auto stream = find_stream(entry.name, handle);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (function == nullptr) return cudaErrorInvalidValue;
    if (stream->device != current_or_chosen()) {
      entry.wrong("the stream is of " + device_text(stream->device) + ", but " + device_text(current_or_chosen()) +
                  " is current");
      return cudaErrorInvalidResourceHandle;
    }
    push(
        stream, [function, data] { function(data); }, Work::host_function);
    return cudaSuccess;
  });
}

}  // extern "C"
