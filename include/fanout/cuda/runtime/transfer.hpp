// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <cuda_runtime_api.h>

#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/device_streams.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/gpu_state.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/peer_access.hpp>
#include <fanout/cuda/runtime/pinned.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// A part of a copy: offset and length in bytes.
struct Run {
  std::size_t begin;
  std::size_t bytes;
};

/// The next run of at most a chunk, of `bytes` bytes in all, after `done` bytes.
inline Run next_run(std::size_t done, std::size_t bytes) noexcept {
  return {done, bytes - done < Staging::chunk_bytes ? bytes - done : Staging::chunk_bytes};
}

/// If a copy fails half way, its enqueued part may go on while its memory is released in another stream. So the
/// destructor waits for the stream, unless finished() was called.
class Unfinished {
 public:
  explicit Unfinished(StreamRef stream) noexcept : stream_(stream) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (finished_) return;
    const QuietGuard entered(gpu_at(stream_.device()));
    if (entered.entered()) note(::cudaStreamSynchronize(stream_.get()), stream_.device());
  }
  void finished() noexcept { finished_ = true; }

 private:
  StreamRef stream_;
  bool finished_ = false;
};

/// Copies host memory to the streams' GPU, in order with the copies stream. When this returns, the source has been read,
/// unless it is pinned.
inline void send(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  const StreamRef copies = streams.copies();
  const int gpu = copies.device();
  const DeviceGuard entered(streams.gpu());
  if (pinned_blocks().use(from, bytes, copies)) {
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies.get()), "cudaMemcpyAsync", gpu);
    return;
  }
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = next_run(run.begin, bytes);
    Staging::Room room = streams.staging().take(copies, run.bytes);
    std::memcpy(room.data(), static_cast<const std::byte*>(from) + run.begin, run.bytes);
    check(::cudaMemcpyAsync(static_cast<std::byte*>(to) + run.begin, room.data(), run.bytes, cudaMemcpyHostToDevice,
                            copies.get()),
          "cudaMemcpyAsync", gpu);
    room.done();
  }
}

/// Copies host memory to the streams' GPU, in order with the device's work. The copy waits for earlier work, which may
/// still use the memory. Later work waits for the copy. The thread waits only while all chunks are in use.
inline void upload(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  const StreamRef copies = streams.copies();
  copies.wait(streams.compute());
  Unfinished copy(copies);
  send(streams, to, from, bytes);
  streams.compute().wait(copies);
  copy.finished();
}

/// Allocates memory on the streams' GPU and copies host memory to it. Earlier work does not use this memory. So it is
/// allocated in the copies stream, and the copy overlaps with that work. Throws OutOfMemory and CudaError.
inline void* upload_new(DeviceStreams& streams, const void* from, std::size_t bytes) {
  const StreamRef copies = streams.copies();
  void* const to = allocate_in(copies, bytes);
  Unfinished copy(copies);
  try {
    send(streams, to, from, bytes);
    streams.compute().wait(copies);
  } catch (...) {
    release_in(copies, to);
    throw;
  }
  copy.finished();
  return to;
}

/// Copies memory of the streams' GPU to the host, in order with the device's work. Waits until all of it is there. While
/// the host copies out one chunk, the GPU fills the next ones.
inline void download(DeviceStreams& streams, void* to, const void* from, std::size_t bytes) {
  const StreamRef compute = streams.compute();
  const int gpu = compute.device();
  const DeviceGuard entered(streams.gpu());
  if (pinned_blocks().use(to, bytes, compute)) {
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, compute.get()), "cudaMemcpyAsync", gpu);
    return compute.synchronize();
  }
  struct Flight {
    Staging::Room room;
    Run run{0, 0};
  };
  Flight flights[Staging::most_chunks];  // a ring, from `taken` to `started`
  std::uint32_t started = 0;
  std::uint32_t taken = 0;
  Unfinished copy(compute);
  for (std::size_t begin = 0; begin < bytes || taken != started;) {
    while (begin < bytes && started - taken < Staging::most_chunks) {
      const Run run = next_run(begin, bytes);
      // Waits for a chunk only if this thread holds none: see Staging::take().
      Staging::Room room = started == taken ? streams.staging().take(compute, run.bytes)
                                            : streams.staging().try_take(compute, run.bytes);
      if (!room) break;
      check(::cudaMemcpyAsync(room.data(), static_cast<const std::byte*>(from) + run.begin, run.bytes,
                              cudaMemcpyDeviceToHost, compute.get()),
            "cudaMemcpyAsync", gpu);
      room.done();
      Flight& flight = flights[started++ % Staging::most_chunks];
      flight.room = static_cast<Staging::Room&&>(room);
      flight.run = run;
      begin += run.bytes;
    }
    Flight& flight = flights[taken++ % Staging::most_chunks];
    flight.room.wait();
    std::memcpy(static_cast<std::byte*>(to) + flight.run.begin, flight.room.data(), flight.run.bytes);
    flight.room = Staging::Room();
  }
  copy.finished();
}

/// Copies between two GPUs through the host, if they cannot copy directly. In order as exchange(). Waits only while all
/// chunks are in use.
inline void exchange_by_host(DeviceStreams& to, void* to_data, DeviceStreams& from, const void* from_data,
                             std::size_t bytes) {
  const StreamRef target = to.compute();
  const StreamRef source = from.compute();
  Staging::Room room;  // declared first, so released after both waits
  Unfinished reading(source);
  Unfinished writing(target);
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = next_run(run.begin, bytes);
    room = Staging::Room();
    room = to.staging().take(target, run.bytes);
    {
      const DeviceGuard entered(from.gpu());
      check(::cudaMemcpyAsync(room.data(), static_cast<const std::byte*>(from_data) + run.begin, run.bytes,
                              cudaMemcpyDeviceToHost, source.get()),
            "cudaMemcpyAsync", source.device());
    }
    target.wait(source);
    const DeviceGuard entered(to.gpu());
    check(::cudaMemcpyAsync(static_cast<std::byte*>(to_data) + run.begin, room.data(), run.bytes,
                            cudaMemcpyHostToDevice, target.get()),
          "cudaMemcpyAsync", target.device());
    room.done();
  }
  reading.finished();
  writing.finished();
}

/// Copies between two GPUs, in order with the work of both devices: after earlier work, before later work. Does not wait
/// if they copy directly.
inline void exchange(DeviceStreams& to, void* to_data, DeviceStreams& from, const void* from_data, std::size_t bytes) {
  const StreamRef target = to.compute();
  const StreamRef source = from.compute();
  if (!peer_trusted(source.device(), target.device())) return exchange_by_host(to, to_data, from, from_data, bytes);
  Unfinished writing(target);
  target.wait(source);
  const DeviceGuard entered(to.gpu());
  check(::cudaMemcpyPeerAsync(to_data, target.device(), from_data, source.device(), bytes, target.get()),
        "cudaMemcpyPeerAsync", target.device());
  // Later work of the source may overwrite or release its memory, so it waits for the copy.
  source.wait(target);
  writing.finished();
}

}}}  // namespace fanout::v0::cuda::detail
