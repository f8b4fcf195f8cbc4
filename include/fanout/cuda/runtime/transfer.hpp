// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <cuda_runtime_api.h>

#include <fanout/cuda/runtime/card.hpp>
#include <fanout/cuda/runtime/device_guard.hpp>
#include <fanout/cuda/runtime/event.hpp>
#include <fanout/cuda/runtime/lane.hpp>
#include <fanout/cuda/runtime/memory_pool.hpp>
#include <fanout/cuda/runtime/peer_access.hpp>
#include <fanout/cuda/runtime/pinned.hpp>
#include <fanout/cuda/runtime/staging.hpp>
#include <fanout/cuda/runtime/status.hpp>
#include <fanout/cuda/runtime/stream.hpp>

namespace fanout { inline namespace v0 { namespace cuda::detail {

/// Part of a copy: from where on, and how long.
struct Run {
  std::size_t begin;
  std::size_t bytes;
};

/// The next run that one chunk holds, of `bytes` bytes of which `done` are done.
inline Run next_run(std::size_t done, std::size_t bytes) noexcept {
  return {done, bytes - done < Staging::chunk_bytes ? bytes - done : Staging::chunk_bytes};
}

/// If a copy fails half way, what was put in the stream of it may go on, while its memory is given back in the order of
/// another stream. So it is waited for.
class Unfinished {
 public:
  explicit Unfinished(StreamRef stream) noexcept : stream_(stream) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (finished_) return;
    const QuietGuard entered(card_at(stream_.device()));
    if (entered.entered()) note(::cudaStreamSynchronize(stream_.get()), stream_.device());
  }
  void finished() noexcept { finished_ = true; }

 private:
  StreamRef stream_;
  bool finished_ = false;
};

/// Copies host memory to memory of the lane's card, in order with the copies. The source has been read when this
/// returns, unless it is pinned.
inline void send(Lane& lane, void* to, const void* from, std::size_t bytes) {
  const StreamRef copies = lane.copies();
  const int card = copies.device();
  const DeviceGuard entered(lane.card());
  if (pinned_blocks().use(from, bytes, copies)) {
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies.get()), "cudaMemcpyAsync", card);
    return;
  }
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = next_run(run.begin, bytes);
    Staging::Room room = lane.staging().take(copies, run.bytes);
    std::memcpy(room.data(), static_cast<const std::byte*>(from) + run.begin, run.bytes);
    check(::cudaMemcpyAsync(static_cast<std::byte*>(to) + run.begin, room.data(), run.bytes, cudaMemcpyHostToDevice,
                            copies.get()),
          "cudaMemcpyAsync", card);
    room.done();
  }
}

/// Copies host memory to memory of the lane's card, in order with the lane's work, which does not wait where it need
/// not: the copy starts when the work that stands before it is done, since that may use the memory still.
inline void upload(Lane& lane, void* to, const void* from, std::size_t bytes) {
  const StreamRef copies = lane.copies();
  copies.wait(lane.compute());
  Unfinished copy(copies);
  send(lane, to, from, bytes);
  lane.compute().wait(copies);
  copy.finished();
}

/// New memory of the lane's card with a copy of host memory. Nothing before it knows this memory, so that the copy
/// overlaps with the work that the lane still does: the memory is allocated in the stream of the copies.
inline void* upload_new(Lane& lane, const void* from, std::size_t bytes) {
  const StreamRef copies = lane.copies();
  void* const to = allocate_in(copies, bytes);
  Unfinished copy(copies);
  try {
    send(lane, to, from, bytes);
    lane.compute().wait(copies);
  } catch (...) {
    release_in(copies, to);
    throw;
  }
  copy.finished();
  return to;
}

/// Copies memory of the lane's card to the host, in order with the lane's work. All of it is there when this returns:
/// while the host takes one chunk, the card fills the next ones.
inline void download(Lane& lane, void* to, const void* from, std::size_t bytes) {
  const StreamRef compute = lane.compute();
  const int card = compute.device();
  const DeviceGuard entered(lane.card());
  if (pinned_blocks().use(to, bytes, compute)) {
    check(::cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, compute.get()), "cudaMemcpyAsync", card);
    return compute.synchronize();
  }
  struct Flight {
    Staging::Room room;
    Run run{0, 0};
  };
  Flight flights[Staging::most_chunks];  // in a ring, the first at `taken`
  std::uint32_t started = 0;
  std::uint32_t taken = 0;
  Unfinished copy(compute);
  for (std::size_t begin = 0; begin < bytes || taken != started;) {
    while (begin < bytes && started - taken < Staging::most_chunks) {
      const Run run = next_run(begin, bytes);
      // Only who has no room waits for one.
      Staging::Room room =
          started == taken ? lane.staging().take(compute, run.bytes) : lane.staging().try_take(compute, run.bytes);
      if (!room) break;
      check(::cudaMemcpyAsync(room.data(), static_cast<const std::byte*>(from) + run.begin, run.bytes,
                              cudaMemcpyDeviceToHost, compute.get()),
            "cudaMemcpyAsync", card);
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

/// Copies from the memory of one card to that of another through the host, where the cards do not reach each other. In
/// order as exchange() says; waits only while all chunks are in use.
inline void exchange_by_host(Lane& to, void* to_data, Lane& from, const void* from_data, std::size_t bytes) {
  const StreamRef target = to.compute();
  const StreamRef source = from.compute();
  Staging::Room room;  // given back when all that uses it has been waited for
  Unfinished reading(source);
  Unfinished writing(target);
  for (Run run{0, 0}; run.begin < bytes; run.begin += run.bytes) {
    run = next_run(run.begin, bytes);
    room = Staging::Room();
    room = to.staging().take(target, run.bytes);
    {
      const DeviceGuard entered(from.card());
      check(::cudaMemcpyAsync(room.data(), static_cast<const std::byte*>(from_data) + run.begin, run.bytes,
                              cudaMemcpyDeviceToHost, source.get()),
            "cudaMemcpyAsync", source.device());
    }
    target.wait(source);
    const DeviceGuard entered(to.card());
    check(::cudaMemcpyAsync(static_cast<std::byte*>(to_data) + run.begin, room.data(), run.bytes,
                            cudaMemcpyHostToDevice, target.get()),
          "cudaMemcpyAsync", target.device());
    room.done();
  }
  reading.finished();
  writing.finished();
}

/// Copies from the memory of one card to that of another, in order with the work of both lanes: after what stands in
/// them, and before what comes. Waits for nothing if the cards reach each other.
inline void exchange(Lane& to, void* to_data, Lane& from, const void* from_data, std::size_t bytes) {
  const StreamRef target = to.compute();
  const StreamRef source = from.compute();
  if (!peer_trusted(source.device(), target.device())) return exchange_by_host(to, to_data, from, from_data, bytes);
  Unfinished writing(target);
  target.wait(source);
  const DeviceGuard entered(to.card());
  check(::cudaMemcpyPeerAsync(to_data, target.device(), from_data, source.device(), bytes, target.get()),
        "cudaMemcpyPeerAsync", target.device());
  // The source's memory is written or given back only when it has been read.
  source.wait(target);
  writing.finished();
}

}}}  // namespace fanout::v0::cuda::detail
